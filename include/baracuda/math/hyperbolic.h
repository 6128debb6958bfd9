// tanh, sigmoid, sinh, cosh.
// Method: e^|x| by the exponential's parts; odd polynomials where the difference would cancel.
#pragma once
#include "baracuda/math/exp.h"

namespace baracuda::math {

namespace detail {

// (tanh(x) - x) / x^3 in z = x^2, |x| <= 0.55; fit "tanh".
BCU_FN float tanh_poly(float z) {
  return horner(z, -0.333333164f, 0.13332586f, -0.0538523085f, 0.0210716743f, -0.00627423357f);
}
#if BCU_HAS_F64
BCU_FN double tanh_poly(double z) {
  return horner(z, -0.33333333333333298, 0.13333333333326622, -0.053968253963760482, 0.021869488385853127,
                -0.0088632326014062481, 0.0035920920301458956, -0.0014555428441799345, 0.00058844448067056935,
                -0.00023338155308787455, 8.3316432179526094e-05, -1.9494679289136263e-05);
}
#endif

// (sinh(x) - x) / x^3 in z = x^2, |x| <= 1; fit "sinh".
BCU_FN float sinh_poly(float z) { return horner(z, 0.166666672f, 0.0083333496f, 0.000198361595f, 2.81695065e-06f); }
#if BCU_HAS_F64
BCU_FN double sinh_poly(double z) {
  return horner(z, 0.16666666666666666, 0.0083333333333333332, 0.000198412698412696, 2.7557319224116285e-06,
                2.5052108346509518e-08, 1.6059050601209959e-10, 7.6464828983885217e-13, 2.8482329551292568e-15);
}
#endif

template <class T>
BCU_FN T tanh_impl(T x, T saturated) {
  T a = fabs(x), z = a * a;
  T small = a + a * z * tanh_poly(z);
  T large = T(1) - T(2) / (exp_normal(T(2) * at_most(a, saturated)) + T(1));
  return copysign(a < T(0.55) ? small : large, x);
}

// 1 / (1 + e^-x) as c / (c + c 2^n (1 + t)), c = 2^-64: no cancellation, nothing overflows, and the far tail underflows
// once, in the division. What the rounding of c + c 2^n loses is put back. Limits and the larger number are found in
// integers, whose order of positive (and, unsigned, of negative) numbers is the same: compilers make one instruction of
// each.
template <class T>
BCU_FN T sigmoid_impl(T x, T low) {
  using F = FloatTraits<T>;
  using Int = typename F::Int;
  using Uint = typename F::Uint;
  const Int most = bit_cast<Int>(T(40)), signed_bits = bit_cast<Int>(x);  // e^-40 is nothing beside 1
  const Uint least = bit_cast<Uint>(low), bits = Uint(signed_bits < most ? signed_bits : most);
  ExpReduced<T> a = exp_reduce(-bit_cast<T>(bits < least ? bits : least), T(0));
  const T c = pow2<T>(-64), s = pow2<T>(a.n - 64);
  const Uint one = bit_cast<Uint>(c), power = bit_cast<Uint>(s);
  Pair<T> d = fast_two_sum(bit_cast<T>(one < power ? power : one), bit_cast<T>(one < power ? one : power));
  T y = c / (d.hi + (s * exp_tail(a.r) + d.lo));
  return x == x ? y : x;
}

// e^|x| / 2, finite as long as cosh is.
template <class T>
BCU_FN T half_exp(T a, T high) {
  ExpReduced<T> r = exp_reduce(at_most(a, high), T(0));
  return scale_pow2(T(1) + exp_tail(r.r), r.n - 1);
}

template <class T>
BCU_FN T sinh_impl(T x, T high) {
  T a = fabs(x), z = a * a;
  T h = half_exp(a, high);
  T large = h - T(0.25) / h;
  return copysign(a < T(1) ? a + a * z * sinh_poly(z) : large, x);
}

template <class T>
BCU_FN T cosh_impl(T x, T high) {
  T h = half_exp(fabs(x), high);
  return h + T(0.25) / h;
}

}  // namespace detail

// ulp: 1.5 (f32) 1.6 (f64)
BCU_FN float tanh(float x) { return detail::tanh_impl(x, 10.0f); }
// ulp: 1.8 (f32) 1.8 (f64)
BCU_FN float sigmoid(float x) { return detail::sigmoid_impl(x, -105.0f); }
// ulp: 1.7 (f32) 1.8 (f64)
BCU_FN float sinh(float x) { return detail::sinh_impl(x, 90.0f); }
// ulp: 1.5 (f32) 1.6 (f64)
BCU_FN float cosh(float x) { return detail::cosh_impl(x, 90.0f); }
#if BCU_HAS_F64
BCU_FN double tanh(double x) { return detail::tanh_impl(x, 20.0); }
BCU_FN double sigmoid(double x) { return detail::sigmoid_impl(x, -746.0); }
BCU_FN double sinh(double x) { return detail::sinh_impl(x, 711.0); }
BCU_FN double cosh(double x) { return detail::cosh_impl(x, 711.0); }
#endif

}  // namespace baracuda::math
