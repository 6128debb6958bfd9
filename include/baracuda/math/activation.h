// What activations are made from: silu and gelu with their slopes, and a sigmoid that leaves out the last corrections.
// Method: one exponential e^-a, kept 2^64 times too large so that it underflows once, after the last product, and one
// division. They are for loops that are bound by arithmetic: 15 to 20 multiplications where exact forms take 40.
#pragma once
#include "baracuda/math/erf.h"

namespace baracuda::math {

// A function and its derivative at one point.
template <class T>
struct Slope {
  T value, slope;
};

namespace detail {

enum : int { kRaised = 64 };
template <class T>
BCU_FN T unraised() {
  return pow2<T>(-kRaised);
}

// 2^64 e^-a for a >= 0; 0 from where neither e^-a nor a e^-a is a number, and NaN for NaN. Where 2^(n + 64) would be
// below the normal numbers its bits are those of 0.
template <class T>
BCU_FN T raised_exp_minus(T a) {
  const T last = T(int(FloatTraits<T>::kBias) + int(kRaised)) * T(0.69314718055994530942);
  a = at_most(a, last);
  T shifted = round_shift<T>() - a * Ln2<T>::log2e(), n = shifted - round_shift<T>();
  T r = (-a - n * Ln2<T>::hi()) - n * Ln2<T>::lo();
  T p = T(1) + r * (T(1) + r * exp_poly(r));
  return p * pow2<T>(bits_apart(shifted, round_shift<T>()) + kRaised);
}

template <class T>
BCU_FN T fast_sigmoid_impl(T x) {
  T e = raised_exp_minus(fabs(x));
  T q = T(1) / (T(1) + e * unraised<T>());
  return x < T(0) ? e * (q * unraised<T>()) : q;
}

// sigmoid' = sigmoid(x) sigmoid(-x), the same on both sides of zero.
template <class T>
BCU_FN Slope<T> fast_sigmoid_slope_impl(T x) {
  T e = raised_exp_minus(fabs(x));
  T q = T(1) / (T(1) + e * unraised<T>());
  T t = e * (q * unraised<T>());
  return {x < T(0) ? t : q, q * t};
}

// x e is rounded before it is lowered; for -inf it is -inf * 0, a NaN, as torch has it.
template <class T>
BCU_FN T silu_of(T x, T e, T q) {
  return x < T(0) ? (x * e) * (q * unraised<T>()) : x * q;
}

template <class T>
BCU_FN T sigmoid_product_impl(T x, T z) {
  T e = raised_exp_minus(fabs(z));
  return silu_of(x, e, T(1) / (T(1) + e * unraised<T>()));
}

// With e = e^-|x|: sigmoid(|x|) = q = 1 / (1 + e), sigmoid(-|x|) = t = e q; silu' = sigmoid(x) + x q t.
template <class T>
BCU_FN Slope<T> silu_slope_impl(T x) {
  T e = raised_exp_minus(fabs(x)), lowered = e * unraised<T>();
  T q = T(1) / (T(1) + lowered), t = lowered * q;
  return {silu_of(x, e, q), (x < T(0) ? t : q) + x * (q * t)};
}

// The normal distribution's tail Phi(-t) = e^(-t^2 / 2) S(q) / (t + k), q = t / (t + k), for t >= 0; S is a polynomial,
// fit "normal_tail", its small error relative to 1 + t^2 / 2.
struct NormalTail {
  BCU_FN float k() { return 3.4f; }
  BCU_FN float s(float q) {
    return horner(q, 1.69999993f, -2.91177368f, 2.30255461f, -0.429879963f, -0.461928010f, 0.0334706381f, 0.291948706f,
                  -0.125827014f);
  }
};

// Where e^(-t^2 / 2) is as good as 0 and raised_bell gives 0.
BCU_FN float bell_end() { return 16.27f; }
// 2^64 e^(-t^2 / 2) for t in [0, bell_end()]. The square's rounding costs t^2 / 2 units; the exponent's is less.
BCU_FN float raised_bell(float t) {
  const float half_log2e = 0.72134752f;
  float square = t * t;
  float shifted = round_shift<float>() - square * half_log2e, n = shifted - round_shift<float>();
  float r = -(square * half_log2e) - n;
  return (1.0f + r * exp2_poly(r)) * pow2<float>(bits_apart(shifted, round_shift<float>()) + kRaised);
}

// gelu(x) = x - x Phi(-x) above zero and x Phi(x) below it, which is max(x, 0) - |x| Phi(-|x|) both times. x - x makes
// -inf a NaN, as -inf * 0 is.
BCU_FN float gelu_of(float x, float lost) { return (x < 0.0f ? x - x : x) - lost; }

BCU_FN float gelu_impl(float x) {
  float t = at_most(fabs(x), bell_end()), q = t / (t + NormalTail::k());
  return gelu_of(x, (raised_bell(t) * q) * (NormalTail::s(q) * unraised<float>()));
}

BCU_FN Slope<float> gelu_slope_impl(float x) {
  float t = at_most(fabs(x), bell_end()), u = 1.0f / (t + NormalTail::k()), e = raised_bell(t);
  float tail = u * NormalTail::s(t * u) * unraised<float>();
  float below = e * tail;
  return {gelu_of(x, (t * e) * tail), (x < 0.0f ? below : 1.0f - below) + x * (e * (0.39894228f * unraised<float>()))};
}

#if BCU_HAS_F64
BCU_FN double normal_cdf(double x) { return 0.5 * erfc_impl(x * -0.70710678118654752440); }

BCU_FN double gelu_impl(double x) { return x * normal_cdf(x); }

BCU_FN Slope<double> gelu_slope_impl(double x) {
  double cdf = normal_cdf(x);
  // e^(-x^2 / 2) of the square as a pair: a rounded one is contracted into the reduction in one loop and not in
  // another.
  double t = at_most(fabs(x), 40.0);  // e^-800 is 0; the square of a large number has no pair
  Pair<double> square = two_prod(t, t);
  double bell = exp_impl(-0.5 * square.hi, -746.0, 710.0);
  bell -= bell * (0.5 * square.lo);
  return {x * cdf, multiply_add(x * 0.39894228040143267794, bell, cdf)};
}
#endif

}  // namespace detail

// ulp: 3 (f32) 3 (f64)
BCU_FN float fast_sigmoid(float x) { return detail::fast_sigmoid_impl(x); }
// |error of the slope| <= 4 eps of it.
BCU_FN Slope<float> fast_sigmoid_slope(float x) { return detail::fast_sigmoid_slope_impl(x); }
// ulp: 4 (f32) 4 (f64)
BCU_FN float silu(float x) { return detail::sigmoid_product_impl(x, x); }
// x sigmoid(z) for z of the sign of x, with the error of silu.
BCU_FN float sigmoid_product(float x, float z) { return detail::sigmoid_product_impl(x, z); }
// |error of the slope| <= 6 eps (sigmoid(x) + |x| sigmoid(x) sigmoid(-x)).
BCU_FN Slope<float> silu_slope(float x) { return detail::silu_slope_impl(x); }
// By the normal distribution function.
// ulp: 5 + 2.5 x^2 (f32) 5 + 2.5 x^2 (f64)
BCU_FN float gelu(float x) { return detail::gelu_impl(x); }
// |error of the slope| <= 6 eps (1 + |x| phi(x) (1 + x^2)).
BCU_FN Slope<float> gelu_slope(float x) { return detail::gelu_slope_impl(x); }
#if BCU_HAS_F64
BCU_FN double fast_sigmoid(double x) { return detail::fast_sigmoid_impl(x); }
BCU_FN Slope<double> fast_sigmoid_slope(double x) { return detail::fast_sigmoid_slope_impl(x); }
BCU_FN double silu(double x) { return detail::sigmoid_product_impl(x, x); }
BCU_FN double sigmoid_product(double x, double z) { return detail::sigmoid_product_impl(x, z); }
BCU_FN Slope<double> silu_slope(double x) { return detail::silu_slope_impl(x); }
BCU_FN double gelu(double x) { return detail::gelu_impl(x); }
BCU_FN Slope<double> gelu_slope(double x) { return detail::gelu_slope_impl(x); }
#endif

}  // namespace baracuda::math
