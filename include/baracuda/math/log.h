// log, log2, log10, log1p.
// Method: x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); log(1 + f) = f - f^2/2 + rest, where the rest is a
// polynomial (f32) or comes from the series of atanh(s), s = f / (2 + f) (f64, as in fdlibm). log2 and log10 multiply
// the sum, split in two, by a constant split in two.
#pragma once
#include "baracuda/math/pair.h"

namespace baracuda::math {
namespace detail {

// (log(1 + f) - f + f^2 / 2) / f^3; fit "log".
BCU_FN float log_poly(float f) {
  return horner(f, 0.333333135f, -0.250000089f, 0.200021237f, -0.166680053f, 0.142194539f, -0.124053426f, 0.118886933f,
                -0.116774984f, 0.0674771816f);
}

BCU_FN float log_rest(float f, float) { return f * f * (f * log_poly(f)); }

#if BCU_HAS_F64
// (atanh(s) - s) / s^3 in z = s^2; fit "log_s".
BCU_FN double log_poly(double z) {
  return horner(z, 0.33333333333333676, 0.19999999999706397, 0.14285714371444272, 0.11111099256889721,
                0.090917839048885632, 0.076569758665516741, 0.073985157059742762);
}

BCU_FN double log_rest(double f, double half_square) {
  double s = f / (2.0 + f), z = s * s;
  return s * (half_square + 2.0 * z * log_poly(z));
}
#endif

template <class T>
struct LogConstants;
template <>
struct LogConstants<float> {
  BCU_FN float root_half() { return 0.70710678f; }
  BCU_FN float ln2_hi() { return 0.693145752f; }
  BCU_FN float ln2_lo() { return 1.42860677e-06f; }
};
#if BCU_HAS_F64
template <>
struct LogConstants<double> {
  BCU_FN double root_half() { return 0.70710678118654752; }
  BCU_FN double ln2_hi() { return 0.69314718036912382; }
  BCU_FN double ln2_lo() { return 1.9082149292705877e-10; }
};
#endif

// x = 2^k m, m in [sqrt(1/2), sqrt(2)).
template <class T>
struct LogReduced {
  T k, m;
};

// For finite x > 0, subnormals included.
template <class T>
BCU_FN LogReduced<T> log_reduce(T x) {
  using Uint = typename FloatTraits<T>::Uint;
  constexpr int kBits = FloatTraits<T>::kMantissaBits;
  constexpr Uint kMask = (Uint(1) << kBits) - 1;
  bool tiny = x < bit_cast<T>(Uint(1) << kBits);
  T scaled = tiny ? x * bit_cast<T>(Uint(FloatTraits<T>::kBias + kBits + 1) << kBits) : x;
  Uint root = bit_cast<Uint>(LogConstants<T>::root_half());
  Uint shifted = bit_cast<Uint>(scaled) + (bit_cast<Uint>(T(1)) - root);
  // The exponent field becomes a float through the low bits of 2^mantissa: int64 conversions need AVX-512.
  T anchor = bit_cast<T>(Uint(FloatTraits<T>::kBias + kBits) << kBits);
  T k = bit_cast<T>((shifted >> kBits) | bit_cast<Uint>(anchor)) - (anchor + T(FloatTraits<T>::kBias));
  return {k - (tiny ? T(kBits + 1) : T(0)), bit_cast<T>((shifted & kMask) + root)};
}

// The values log takes outside (0, inf).
template <class T>
BCU_FN T log_special(T x, T y) {
  y = x < infinity<T>() ? y : x;
  y = x == T(0) ? -infinity<T>() : y;
  return x < T(0) ? quiet_nan<T>() : y;
}

// k ln2 + log(1 + f)
template <class T>
BCU_FN T log_sum(T k, T f) {
  T half_square = T(0.5) * f * f;
  T rest = log_rest(f, half_square);
  return k * LogConstants<T>::ln2_hi() + (f - (half_square - (rest + k * LogConstants<T>::ln2_lo())));
}

template <class T>
BCU_FN T log_impl(T x) {
  LogReduced<T> a = log_reduce(x);
  return log_special(x, log_sum(a.k, a.m - T(1)));
}

// k * (unit_hi + unit_lo) + log(1 + f) * (factor_hi + factor_lo); the products of the high parts are exact.
template <class T>
BCU_FN T log_base(T x, T unit_hi, T unit_lo, T factor_hi, T factor_lo) {
  LogReduced<T> a = log_reduce(x);
  T f = a.m - T(1), half_square = T(0.5) * f * f;
  T rest = log_rest(f, half_square);
  T hi = upper_half(f - half_square);
  T lo = ((f - hi) - half_square) + rest;
  Pair<T> sum = fast_two_sum(a.k * unit_hi, hi * factor_hi);
  return log_special(x, sum.hi + (sum.lo + (a.k * unit_lo + ((lo + hi) * factor_lo + lo * factor_hi))));
}

template <class T>
BCU_FN T log1p_impl(T x) {
  using Uint = typename FloatTraits<T>::Uint;
  Pair<T> u = two_sum(T(1), x);
  LogReduced<T> a = log_reduce(u.hi);
  // What was lost in 1 + x, on the scale of m; it does not matter for large x, where the scale could leave the range.
  T scale = bit_cast<T>(bit_cast<Uint>(a.m) - bit_cast<Uint>(u.hi) + bit_cast<Uint>(T(1)));
  T f = (a.m - T(1)) + u.lo * (x > T(0x1p40) ? T(0) : scale);
  T y = log_special(u.hi, log_sum(a.k, f));
  return x == T(0) ? x : y;
}

}  // namespace detail

// ulp: 0.9 (f32) 0.9 (f64)
BCU_FN float log(float x) { return detail::log_impl(x); }
// ulp: 0.9 (f32) 0.9 (f64)
BCU_FN float log2(float x) { return detail::log_base(x, 1.0f, 0.0f, 1.44238281f, 0.000312228396f); }
// ulp: 0.8 (f32) 0.8 (f64)
BCU_FN float log10(float x) {
  return detail::log_base(x, 0.301025391f, 4.60503907e-06f, 0.434204102f, 9.03803375e-05f);
}
// ulp: 1.4 (f32) 1.4 (f64)
BCU_FN float log1p(float x) { return detail::log1p_impl(x); }
#if BCU_HAS_F64
BCU_FN double log(double x) { return detail::log_impl(x); }
BCU_FN double log2(double x) { return detail::log_base(x, 1.0, 0.0, 1.4426950216293335, 1.9259629911266175e-08); }
BCU_FN double log10(double x) {
  return detail::log_base(x, 0.30102999566361177, 3.6942390771589308e-13, 0.43429447710514069, 4.7981111416159728e-09);
}
BCU_FN double log1p(double x) { return detail::log1p_impl(x); }
#endif

}  // namespace baracuda::math
