// pow with the special cases of C99, rsqrt, cbrt and hypot.
// Method: log2|x| as a pair from the series of atanh(s), s = (m - 1) / (m + 1) carried as a pair; y * log2|x| as a
// pair; 2^n e^(r ln2) of that.
#pragma once
#include "baracuda/math/exp.h"
#include "baracuda/math/log.h"

namespace baracuda::math {
namespace detail {

// (atanh(s) / s - 1 - z/3) / z^2 in z = s^2; fit "pow_log".
BCU_FN float pow_log_poly(float z) { return horner(z, 0.199999988f, 0.14285937f, 0.110924691f, 0.097345829f); }
#if BCU_HAS_F64
BCU_FN double pow_log_poly(double z) {
  return horner(z, 0.20000000000000001, 0.14285714285714188, 0.11111111111145533, 0.090909090845881307,
                0.076923083800907885, 0.066666200281527019, 0.058843430147419051, 0.052113445202098103,
                0.055074505423685159);
}
#endif

template <class T>
struct PowConstants;
template <>
struct PowConstants<float> {
  BCU_FN Pair<float> third() { return {0.333333343f, -9.93410776e-09f}; }
  BCU_FN Pair<float> two_log2e() { return {2.88539004f, 3.85192607e-08f}; }
  BCU_FN Pair<float> ln2() { return {0.693147182f, -1.90465421e-09f}; }
  BCU_FN float limit() { return 200.0f; }
};
#if BCU_HAS_F64
template <>
struct PowConstants<double> {
  BCU_FN Pair<double> third() { return {0.33333333333333331, 1.8503717077085941e-17}; }
  BCU_FN Pair<double> two_log2e() { return {2.8853900817779268, 4.0710547481862066e-17}; }
  BCU_FN Pair<double> ln2() { return {0.69314718055994529, 2.3190468138462996e-17}; }
  BCU_FN double limit() { return 1500.0; }
};
#endif

// log2(x) as a pair for finite x > 0.
template <class T>
BCU_FN Pair<T> log2_pair(T x) {
  LogReduced<T> a = log_reduce(x);
  T f = a.m - T(1);
  Pair<T> d = two_sum(a.m, T(1));
  T s = f / d.hi;
  Pair<T> p = two_prod(s, d.hi);
  Pair<T> quotient = {s, (((f - p.hi) - p.lo) - s * d.lo) / d.hi};
  // atanh(s) / s = 1 + (z/3 + z^2 Q(z))
  Pair<T> z = mul(quotient, quotient);
  Pair<T> tail = mul(z, PowConstants<T>::third());
  tail = fast_two_sum(tail.hi, tail.lo + z.hi * z.hi * pow_log_poly(z.hi));
  Pair<T> series = fast_two_sum(T(1), tail.hi);
  series.lo += tail.lo;
  Pair<T> fraction = mul(mul(quotient, series), PowConstants<T>::two_log2e());
  Pair<T> sum = fast_two_sum(a.k, fraction.hi);
  return fast_two_sum(sum.hi, sum.lo + fraction.lo);
}

// |x|^y for finite x != 0 and finite y.
template <class T>
BCU_FN T pow_positive(T x, T y) {
  T limit = PowConstants<T>::limit();
  Pair<T> log2x = log2_pair(x);
  T estimate = y * log2x.hi;
  bool inside = fabs(estimate) < limit;
  Pair<T> p = two_prod(y, log2x.hi);
  T hi = inside ? p.hi : at_least(at_most(estimate, limit), -limit);
  T lo = inside ? p.lo + y * log2x.lo : T(0);
  T n = rint(hi);
  Pair<T> r = mul(fast_two_sum(hi - n, lo), PowConstants<T>::ln2());
  T e = T(1) + (r.hi + (r.hi * r.hi * exp_poly(r.hi) + r.lo));
  return scale_pow2(e, to_int(n));
}

#if BCU_HAS_F64 && !defined(__CUDACC__)
// f32 through f64, which needs no pairs: log2(1 + f) by fit "pow_log2", to 2^-35.8 of itself, 2^r by "pow_exp2", to
// 2^-34.
BCU_FN float pow_positive(float x, float y) {
  LogReduced<float> a = log_reduce(x);
  double f = double(a.m - 1.0f);
  double series = even_odd(f, 1.4426950408686197, -0.72134752086979403, 0.48089836144856857, -0.3606736746948081,
                           0.28853728832329389, -0.24045316673659844, 0.20617553264866673, -0.18030077519212853,
                           0.15876748569883253, -0.14315208392992121, 0.1447578603125145, -0.14286757122658067,
                           0.077386508712640287);
  double t = double(y) * (double(a.k) + f * series);
  t = at_least(at_most(t, 200.0), -200.0);
  // With the bias in it, the last bits of `shifted` are the exponent of 2^n.
  const double shift = round_shift<double>() + double(int(FloatTraits<double>::kBias));
  double shifted = t + shift, r = t - (shifted - shift);
  double power = even_odd(r, 1.0, 0.69314718070568893, 0.24022651068786074, 0.055504103630731202, 0.009618037768731949,
                          0.0013333936464193996, 0.00015466882469544621, 1.5196069182179269e-05);
  using F = FloatTraits<double>;
  return float(power * bit_cast<double>(bit_cast<F::Uint>(shifted) << F::kMantissaBits));
}
#endif

template <class T>
BCU_FN T pow_impl(T x, T y) {
  T a = fabs(x), inf = infinity<T>();
  bool whole = rint(y) == y;
  bool odd = whole & (rint(y * T(0.5)) != y * T(0.5));
  T magnitude = pow_positive(a, y);
  // 0 and inf: the sign of y decides; |y| = inf: whether |x| is beyond 1.
  bool extreme = (a == T(0)) | (a == inf);
  magnitude = extreme ? ((a == T(0)) ^ (y > T(0)) ? inf : T(0)) : magnitude;
  bool endless = fabs(y) == inf;
  magnitude = endless ? (a == T(1) ? T(1) : ((a > T(1)) ^ (y > T(0)) ? T(0) : inf)) : magnitude;
  T signed_value = odd ? copysign(magnitude, x) : magnitude;
  signed_value = (x < T(0)) & !whole & !extreme ? quiet_nan<T>() : signed_value;
  signed_value = (x != x) | (y != y) ? x + y : signed_value;
  return (x == T(1)) | (y == T(0)) ? T(1) : signed_value;
}

// A power of 8 (and its cube root) by which the smallest numbers are lifted to where the products below keep their low
// parts, and the largest ones lowered to where a cube stays in range.
template <class T>
struct CbrtScale;
template <>
struct CbrtScale<float> {
  BCU_FN float small() { return 0x1p-40f; }
  BCU_FN float large() { return 0x1p100f; }
  BCU_FN float up() { return 0x1p96f; }
  BCU_FN float down() { return 0x1p-32f; }
};
#if BCU_HAS_F64
template <>
struct CbrtScale<double> {
  BCU_FN double small() { return 0x1p-600; }
  BCU_FN double large() { return 0x1p700; }
  BCU_FN double up() { return 0x1p600; }
  BCU_FN double down() { return 0x1p-200; }
};
#endif

// 2^(log2|x| / 3), then one step of Newton's method with the residual in twice the precision.
template <class T>
BCU_FN T cbrt_impl(T x) {
  T a = fabs(x);
  bool tiny = a<CbrtScale<T>::small(), huge = a> CbrtScale<T>::large();
  T up = CbrtScale<T>::up(), down = CbrtScale<T>::down();
  T s = a * (tiny ? up : huge ? T(1) / up : T(1));
  LogReduced<T> r = log_reduce(s);
  T log2s = r.k + log_sum(T(0), r.m - T(1)) * Ln2<T>::log2e();
  T e = log2s * T(0.33333333333333333333), n = rint(e), f = e - n;
  T y = (T(1) + f * exp2_poly(f)) * pow2<T>(to_int(n));
  Pair<T> square = two_prod(y, y), cube = two_prod(square.hi, y);
  T residual = ((cube.hi - s) + cube.lo) + square.lo * y;
  y = (y - residual / (T(3) * square.hi)) * (tiny ? down : huge ? T(1) / down : T(1));
  T inf = infinity<T>();
  bool plain = (a > T(0)) & (a < inf);
  return plain ? copysign(y, x) : x;
}

// sqrt(x^2 + y^2) of numbers brought near 1 by a power of two, with what the squares lost.
template <class T>
BCU_FN T hypot_impl(T x, T y) {
  using Uint = typename FloatTraits<T>::Uint;
  constexpr int kBits = FloatTraits<T>::kMantissaBits;
  T a = fabs(x), b = fabs(y), high = a < b ? b : a, low = a < b ? a : b;
  // The exponent's bits of 1 / 2^e as 2 * bias - bits(2^e); kept among normal numbers.
  const Uint one = Uint(FloatTraits<T>::kBias) << kBits, field = Uint(2 * FloatTraits<T>::kBias + 1) << kBits;
  T near =
      at_least(at_most(high, bit_cast<T>(Uint(2 * FloatTraits<T>::kBias - 2) << kBits)), bit_cast<T>(Uint(3) << kBits));
  Uint e = bit_cast<Uint>(near) & field;
  T scale = bit_cast<T>(Uint(2) * one - e), back = bit_cast<T>(e);
  T h = high * scale, l = low * scale;
  // Both squares as pairs: a plain l * l is contracted in one copy of a loop and not in another, with other bits.
  Pair<T> square = two_prod(h, h), other = two_prod(l, l);
  Pair<T> sum = fast_two_sum(square.hi, other.hi);
  T root = sqrt(sum.hi);
  T result = (root + (sum.lo + (square.lo + other.lo)) / (T(2) * (root > T(0) ? root : T(1)))) * back;
  result = (x != x) | (y != y) ? x + y : result;
  return high == infinity<T>() ? infinity<T>() : low == infinity<T>() ? infinity<T>() : result;
}

}  // namespace detail

// ulp: 1.0 (f32) 1.2 (f64)
BCU_FN float pow(float x, float y) { return detail::pow_impl(x, y); }
// The same bits for finite x above zero and finite y, where they take half the time. Others' mean nothing.
BCU_FN bool is_plain_pow(float x, float y) {
  const float inf = infinity<float>(), size = fabs(y);
  return (x > 0.0f) & (x < inf) & (size < inf);
}
BCU_FN float pow_plain(float x, float y) { return detail::pow_positive(x, y); }
// ulp: 1.5 (f32) 1.5 (f64)
BCU_FN float rsqrt(float x) { return 1.0f / sqrt(x); }
// ulp: 0.6 (f32) 0.6 (f64)
BCU_FN float cbrt(float x) { return detail::cbrt_impl(x); }
// ulp: 1.1 (f32) 1.1 (f64)
BCU_FN float hypot(float x, float y) { return detail::hypot_impl(x, y); }
#if BCU_HAS_F64
BCU_FN double pow(double x, double y) { return detail::pow_impl(x, y); }
BCU_FN double rsqrt(double x) { return 1.0 / sqrt(x); }
BCU_FN double cbrt(double x) { return detail::cbrt_impl(x); }
BCU_FN double hypot(double x, double y) { return detail::hypot_impl(x, y); }
#endif

}  // namespace baracuda::math
