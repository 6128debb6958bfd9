// asin, acos, atan, atan2.
// Method: asin is an odd polynomial up to 1/2; beyond, asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)). atan is an odd
// polynomial up to tan(pi/8); beyond, atan(x) = pi/4 + atan((x - 1) / (x + 1)) or pi/2 + atan(-1 / x).
// atan2 takes atan of the smaller coordinate over the larger, as a pair, and adds quarters of pi.
#pragma once
#include "baracuda/math/pair.h"

namespace baracuda::math {
namespace detail {

// (asin(x) - x) / x^3 in z = x^2, |x| <= 1/2; fit "asin".
BCU_FN float asin_poly(float z) {
  return horner(z, 0.166667521f, 0.0749528855f, 0.0454716235f, 0.0241728798f, 0.0421783403f);
}
#if BCU_HAS_F64
BCU_FN double asin_poly(double z) {
  return horner(z, 0.1666666666666676, 0.074999999999706343, 0.044642857174778963, 0.030381942699377416,
                0.022372215234744315, 0.017351607401483164, 0.013980877815202988, 0.011398428135449954,
                0.010783050169419266, 0.0036955338248132251, 0.021734638484305898, -0.021038554741413508,
                0.032653941122300571);
}
#endif

// (atan(x) - x) / x^3 in z = x^2, |x| <= tan(pi/8); fit "atan".
BCU_FN float atan_poly(float z) {
  return horner(z, -0.333333164f, 0.199984655f, -0.142434239f, 0.105929546f, -0.0607593544f);
}
#if BCU_HAS_F64
BCU_FN double atan_poly(double z) {
  return horner(z, -0.33333333333333326, 0.19999999999997625, -0.14285714285383005, 0.11111111087884826,
                -0.09090908134561855, 0.076922825455021396, -0.066662237710982328, 0.058769939764021464,
                -0.052182335425218586, 0.045028850640776011, -0.033459630909579353, 0.015180688702120002);
}
#endif

template <class T>
struct Angle;
template <>
struct Angle<float> {
  BCU_FN Pair<float> half_pi() { return {1.57079637f, -4.37113883e-08f}; }
  BCU_FN Pair<float> quarter_pi() { return {0.785398185f, -2.18556941e-08f}; }
};
#if BCU_HAS_F64
template <>
struct Angle<double> {
  BCU_FN Pair<double> half_pi() { return {1.5707963267948966, 6.123233995736766e-17}; }
  BCU_FN Pair<double> quarter_pi() { return {0.78539816339744828, 3.061616997868383e-17}; }
};
#endif

// asin of s + s_lo as s + the returned rest, s <= 1/2.
template <class T>
BCU_FN T asin_rest(T s, T s_lo, T z) {
  return s * z * asin_poly(z) + s_lo;
}

// |x| <= 1/2: s = |x|; otherwise s = sqrt((1 - |x|) / 2) with what the root lost.
template <class T>
struct AsinReduced {
  T s, rest;
  bool small;
};

template <class T>
BCU_FN AsinReduced<T> asin_reduce(T a) {
  bool small = a <= T(0.5);
  T z = small ? a * a : T(0.5) * (T(1) - a);
  T root = sqrt(z);
  Pair<T> square = two_prod(root, root);
  T root_lo = z == T(0) ? T(0) : ((z - square.hi) - square.lo) / (T(2) * root);
  T s = small ? a : root;
  return {s, asin_rest(s, small ? T(0) : root_lo, z), small};
}

template <class T>
BCU_FN T asin_impl(T x) {
  AsinReduced<T> r = asin_reduce(fabs(x));
  Pair<T> half_pi = Angle<T>::half_pi();
  Pair<T> top = fast_two_sum(half_pi.hi, T(-2) * r.s);
  T large = top.hi + (top.lo + (half_pi.lo - T(2) * r.rest));
  return copysign(r.small ? r.s + r.rest : large, x);
}

template <class T>
BCU_FN T acos_impl(T x) {
  AsinReduced<T> r = asin_reduce(fabs(x));
  Pair<T> half_pi = Angle<T>::half_pi();
  // small: pi/2 - asin(x); near 1: 2 asin(s); near -1: pi - 2 asin(s)
  T sign = r.small ? copysign(T(1), x) : T(1), s = sign * r.s, rest = sign * r.rest;
  T factor = r.small ? T(1) : T(2);
  T unit = r.small ? T(1) : (x < T(0) ? T(2) : T(0));
  Pair<T> top = fast_two_sum(unit * half_pi.hi, -factor * s);
  T from_top = top.hi + (top.lo + (unit * half_pi.lo - factor * rest));
  T near_one = T(2) * (r.s + r.rest);
  return !r.small && x > T(0) ? near_one : from_top;
}

template <class T>
BCU_FN T atan_impl(T x) {
  // a beyond 2^100 gives pi/2 in any case; infinity would be 0 * inf below.
  constexpr int kBits = FloatTraits<T>::kMantissaBits;
  T a = at_most(fabs(x), bit_cast<T>(typename FloatTraits<T>::Uint(FloatTraits<T>::kBias + 100) << kBits));
  // t = (p a - q) / (q a + p): a, (a - 1) / (a + 1) or -1 / a. More selects on these conditions, of which one implies
  // the other, become branches in GCC.
  T q = a > T(0.41421356237309503) ? T(1) : T(0);
  T p = a > T(2.4142135623730950) ? T(0) : T(1);
  Pair<T> t = divide(two_sum(p * a, -q), two_sum(q * a, p));
  T z = t.hi * t.hi;
  T quarters = q + (T(1) - p);
  Pair<T> quarter_pi = Angle<T>::quarter_pi();
  Pair<T> top = fast_two_sum(quarters * quarter_pi.hi, t.hi);
  T rest = t.hi * z * atan_poly(z) + (quarters * quarter_pi.lo + t.lo);
  return copysign(top.hi + (top.lo + rest), x);
}

template <class T>
struct Atan2Scale;
template <>
struct Atan2Scale<float> {
  BCU_FN float small() { return 0x1p-40f; }
  BCU_FN float up() { return 0x1p64f; }
};
#if BCU_HAS_F64
template <>
struct Atan2Scale<double> {
  BCU_FN double small() { return 0x1p-500; }
  BCU_FN double up() { return 0x1p600; }
};
#endif

// low / high for 0 <= low <= high, as a pair; infinities are equal, and 0 / 0 is 0.
template <class T>
BCU_FN Pair<T> atan2_quotient(T low, T high) {
  T scale = high < Atan2Scale<T>::small() ? Atan2Scale<T>::up() : T(1);
  T l = low * scale, h = high * scale, r = l / h;
  Pair<T> p = two_prod(r, h);
  T lost = ((l - p.hi) - p.lo) / h;
  bool equal = low == high, tiny = !(r > T(0x1p-60));
  r = equal ? (high == T(0) ? T(0) : T(1)) : r;
  return {r, equal | tiny ? T(0) : lost};
}

template <class T>
BCU_FN T atan2_impl(T y, T x) {
  T a = fabs(y), b = fabs(x);
  bool steep = a > b, left = copysign(T(1), x) < T(0);
  Pair<T> r = atan2_quotient(steep ? b : a, steep ? a : b);
  // Beyond tan(pi/8): pi/4 + atan((r - 1) / (r + 1))
  bool turned = r.hi > T(0.41421356237309503);
  T one = turned ? T(1) : T(0);
  Pair<T> above = two_sum(r.hi, -one), below = two_sum(one * r.hi, T(1));
  above.lo += r.lo;
  below.lo += one * r.lo;
  Pair<T> t = divide(above, below);
  // A quotient too small for the low part of a product is one by 1 already.
  t.hi = turned ? t.hi : r.hi;
  t.lo = turned ? t.lo : r.lo;
  // In quarters of pi: past the diagonal from the vertical axis, on the left side from the horizontal one.
  T quarters = steep ? T(2) - one : one, sign = steep ? T(-1) : T(1);
  quarters = left ? T(4) - quarters : quarters;
  sign = left ? -sign : sign;
  Pair<T> quarter_pi = Angle<T>::quarter_pi(), base = two_prod(quarters, quarter_pi.hi);
  Pair<T> top = fast_two_sum(base.hi, sign * t.hi);
  T z = t.hi * t.hi;
  T rest = sign * (t.hi * z * atan_poly(z) + t.lo) + (base.lo + quarters * quarter_pi.lo);
  T angle = copysign(top.hi + (top.lo + rest), y);
  return (x != x) | (y != y) ? x + y : angle;
}

}  // namespace detail

// ulp: 0.8 (f32) 0.8 (f64)
BCU_FN float asin(float x) { return detail::asin_impl(x); }
// ulp: 0.8 (f32) 0.8 (f64)
BCU_FN float acos(float x) { return detail::acos_impl(x); }
// ulp: 0.8 (f32) 0.8 (f64)
BCU_FN float atan(float x) { return detail::atan_impl(x); }
// ulp: 1.1 (f32) 1.1 (f64)
BCU_FN float atan2(float y, float x) { return detail::atan2_impl(y, x); }
#if BCU_HAS_F64
BCU_FN double asin(double x) { return detail::asin_impl(x); }
BCU_FN double acos(double x) { return detail::acos_impl(x); }
BCU_FN double atan(double x) { return detail::atan_impl(x); }
BCU_FN double atan2(double y, double x) { return detail::atan2_impl(y, x); }
#endif

}  // namespace baracuda::math
