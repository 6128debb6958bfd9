// pow with the special cases of C99, and rsqrt.
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

}  // namespace detail

// ulp: 1.0 (f32) 1.2 (f64)
BCU_FN float pow(float x, float y) { return detail::pow_impl(x, y); }
// ulp: 1.5 (f32) 1.5 (f64)
BCU_FN float rsqrt(float x) { return 1.0f / sqrt(x); }
#if BCU_HAS_F64
BCU_FN double pow(double x, double y) { return detail::pow_impl(x, y); }
BCU_FN double rsqrt(double x) { return 1.0 / sqrt(x); }
#endif

}  // namespace baracuda::math
