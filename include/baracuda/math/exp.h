// exp, exp2, expm1.
// Method: x = n ln2 + r with |r| <= ln2/2 (Cody-Waite, two parts of ln2), a polynomial for e^r, then 2^n in two steps.
// Polynomials: tools/fit_polynomials.py, fits "exp", "expm1", "exp2" and "exp_weight".
#pragma once
#include "baracuda/math/pair.h"

namespace baracuda::math {
namespace detail {

// (e^r - 1 - r) / r^2 on [-ln2/2, ln2/2], small error relative to e^r.
BCU_FN float exp_poly(float r) {
  return horner(r, 0.49999994f, 0.166665196f, 0.0416683927f, 0.00836877991f, 0.00138144486f);
}
#if BCU_HAS_F64
BCU_FN double exp_poly(double r) {
  return horner(r, 0.50000000000000111, 0.1666666666666641, 0.041666666666529191, 0.0083333333334956235,
                0.0013888888943921513, 0.00019841269504765815, 2.4801492763886124e-05, 2.7557587342958067e-06,
                2.7630378247355146e-07, 2.4999964725358614e-08);
}
#endif

// The same, small error relative to e^r - 1.
BCU_FN float expm1_poly(float r) {
  return horner(r, 0.49999997f, 0.166665435f, 0.0416672006f, 0.00836658012f, 0.00138825329f);
}
#if BCU_HAS_F64
BCU_FN double expm1_poly(double r) {
  return horner(r, 0.5, 0.16666666666666677, 0.041666666666666505, 0.0083333333333216082, 0.0013888888888962875,
                0.00019841269886207948, 2.4801587171886422e-05, 2.7557244104031339e-06, 2.7557402905410489e-07,
                2.5109081477459879e-08, 2.0875338863914331e-09);
}
#endif

// (2^r - 1) / r on [-1/2, 1/2].
BCU_FN float exp2_poly(float r) {
  return horner(r, 0.693147182f, 0.240226477f, 0.0555033199f, 0.00961843878f, 0.00133990042f, 0.000153532805f);
}
#if BCU_HAS_F64
BCU_FN double exp2_poly(double r) {
  return horner(r, 0.69314718055994529, 0.24022650695910072, 0.055504108664821687, 0.0096181291076283277,
                0.0013333558146392407, 0.00015403530393642809, 1.5252733854617547e-05, 1.3215486593726011e-06,
                1.0178051806667683e-07, 7.0549747353481874e-09, 4.4565924226587286e-10, 2.5625306762644305e-11);
}
#endif

// (2^r - 1) / r on [-1/2, 1/2] to 2^-23.4: what a weight needs.
BCU_FN float exp_weight_poly(float r) {
  return horner(r, 0.693147004f, 0.240222409f, 0.0555073507f, 0.00967161823f, 0.00132645969f);
}

template <class T>
struct Ln2;
template <>
struct Ln2<float> {
  BCU_FN float log2e() { return 1.44269504f; }
  BCU_FN float hi() { return 0.693145752f; }  // 15 bits: n * hi is exact
  BCU_FN float lo() { return 1.42860677e-06f; }
  BCU_FN float least() { return -87.3f; }  // above the logarithm of the smallest normal number
};
#if BCU_HAS_F64
template <>
struct Ln2<double> {
  BCU_FN double log2e() { return 1.4426950408889634; }
  BCU_FN double hi() { return 0.69314718036912382; }  // 32 bits
  BCU_FN double lo() { return 1.9082149292705877e-10; }
};
#endif

// x = n ln2 + r (+ r_lo).
template <class T>
struct ExpReduced {
  typename FloatTraits<T>::Int n;
  T r, r_lo;
};

// exp(x - tail); |tail| << 1. x * log2e must stay below 4096.
template <class T>
BCU_FN ExpReduced<T> exp_reduce(T x, T tail) {
  T shifted = x * Ln2<T>::log2e() + round_shift<T>();
  T n = shifted - round_shift<T>();
  T rh = x - n * Ln2<T>::hi();
  T t = n * Ln2<T>::lo() + tail;
  T r = rh - t;
  return {bits_apart(shifted, round_shift<T>()), r, (rh - r) - t};
}

// e^r - 1 for the reduced argument.
template <class T>
BCU_FN T exp_tail(T r) {
  return r + r * r * exp_poly(r);
}

// exp(x) for x where 2^n is a normal number.
template <class T>
BCU_FN T exp_normal(T x) {
  ExpReduced<T> a = exp_reduce(x, T(0));
  return (T(1) + exp_tail(a.r)) * pow2<T>(a.n);
}

template <class T>
BCU_FN T exp_impl(T x, T low, T high) {
  ExpReduced<T> a = exp_reduce(at_least(at_most(x, high), low), T(0));
  return scale_pow2(T(1) + exp_tail(a.r), a.n);
}

template <class T>
BCU_FN T exp2_impl(T x, T low, T high) {
  x = at_least(at_most(x, high), low);
  T shifted = x + round_shift<T>();
  T r = x - (shifted - round_shift<T>());
  return scale_pow2(T(1) + r * exp2_poly(r), bits_apart(shifted, round_shift<T>()));
}

// 2^n (1 + q) - 1 as 2 ((2^(n-1) - 1/2) + 2^(n-1) q), so that n may be one more than the largest exponent.
template <class T>
BCU_FN T expm1_impl(T x, T low, T high) {
  ExpReduced<T> a = exp_reduce(at_least(at_most(x, high), low), T(0));
  T s = pow2<T>(a.n - 1);
  T rest = a.r * a.r * expm1_poly(a.r) + a.r_lo;
  Pair<T> sum = fast_two_sum(s - T(0.5), s * a.r);
  return copysign(T(2) * (sum.hi + (sum.lo + s * rest)), x);
}

}  // namespace detail

// ulp: 1.1 (f32) 1.2 (f64)
BCU_FN float exp(float x) { return detail::exp_impl(x, -105.0f, 89.0f); }
// ulp: 1.3 (f32) 1.3 (f64)
BCU_FN float exp2(float x) { return detail::exp2_impl(x, -152.0f, 129.0f); }
// ulp: 1.2 (f32) 1.2 (f64)
BCU_FN float expm1(float x) { return detail::expm1_impl(x, -20.0f, 89.0f); }
// e^x of a rounded difference, as in softmax, where the rounding alone costs |x| eps / 2: within 1.4 eps (1 + |x|), and
// 0 where e^x is no normal number. Only for x <= 88, which saves a comparison: half of exp's operations.
BCU_FN float exp_weight(float x) {
  using F = FloatTraits<float>;
  // With the bias in it, the last bits of `shifted` are the exponent of 2^n.
  const float shift = detail::round_shift<float>() + float(F::kBias);
  float scaled = x * detail::Ln2<float>::log2e(), shifted = scaled + shift, r = scaled - (shifted - shift);
  float power = bit_cast<float>(bit_cast<F::Uint>(shifted) << F::kMantissaBits);
  return x < detail::Ln2<float>::least() ? 0.0f : (1.0f + r * detail::exp_weight_poly(r)) * power;
}
#if BCU_HAS_F64
BCU_FN double exp_weight(double x) { return detail::exp_impl(x, -746.0, 710.0); }
BCU_FN double exp(double x) { return detail::exp_impl(x, -746.0, 710.0); }
BCU_FN double exp2(double x) { return detail::exp2_impl(x, -1078.0, 1025.0); }
BCU_FN double expm1(double x) { return detail::expm1_impl(x, -40.0, 710.0); }
#endif

}  // namespace baracuda::math
