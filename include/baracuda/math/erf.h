// erf, erfc.
// Method: erf: x + x P(x^2) up to 1, then 1 - erfc. erfc(x) = e^(-x^2) R(q) / (1 + 2x), q = (x - k) / (x + k)
// (Shepherd and Laframboise), with the roundings of x^2, q, the exponential and the quotient carried along. erf in f32
// needs erfc only to the precision of 1 - erfc, where a polynomial for log(erfc) is cheaper.
#pragma once
#include "baracuda/math/exp.h"

namespace baracuda::math {
namespace detail {

// erf(x) / x - 1 in z = x^2, |x| <= 1; fit "erf".
BCU_FN float erf_poly(float z) {
  return horner(z, 0.128379166f, -0.37612626f, 0.112835854f, -0.0268538129f, 0.00518832775f, -0.000801019487f,
                7.85386583e-05f);
}
#if BCU_HAS_F64
BCU_FN double erf_poly(double z) {
  return horner(z, 0.12837916709551259, -0.37612638903183748, 0.11283791670954857, -0.026866170645072896,
                0.0052239776247808671, -0.00085483269787423413, 0.00012055331036906241, -1.4925593507063942e-05,
                1.6460972819843795e-06, -1.635002525193016e-07, 1.4657880033042942e-08, -1.1365666676715732e-09,
                5.9452629283336952e-11);
}
#endif

// log(erfc(x)) / x on [0.9, 4]; fit "log_erfc".
BCU_FN float log_erfc_poly(float x) {
  return horner(x, -1.12854147f, -0.635673106f, -0.105169542f, 0.0225756634f, -0.00286915177f, 2.74467056e-05f,
                4.99381313e-05f, -5.2968021e-06f);
}

// erfc(x) e^(x^2) (1 + 2x), without its value at q = 0 and divided by q; fits "erfc_f32" and "erfc_f64".
template <class T>
struct Erfc;
template <>
struct Erfc<float> {
  BCU_FN float center() { return 3.0f; }
  BCU_FN float last() { return 10.1f; }  // erfc is 0 from here
  BCU_FN float at_center() { return 1.25300801f; }
  BCU_FN float poly(float q) {
    return horner(q, -0.135621145f, -0.047562398f, 0.12964642f, -0.119270973f, 0.0682957694f, -0.0237975344f,
                  0.00256737298f, 0.00200181827f, -0.000777572568f, -0.000268123491f);
  }
};
#if BCU_HAS_F64
template <>
struct Erfc<double> {
  BCU_FN double center() { return 4.0; }
  BCU_FN double last() { return 27.3; }
  BCU_FN double at_center() { return 1.2329951186255526; }
  BCU_FN double poly(double q) {
    return horner(q, -0.13962111684056253, 0.015379652102619655, 0.068097054254695435, -0.10103906603629965,
                  0.093732834998251274, -0.066330365812316966, 0.03716751553908347, -0.016197734056681571,
                  0.005031969963676451, -0.00075777329642345262, -0.00019925661744011323, 0.00015062171443441604,
                  -2.4399475341544305e-05, -1.1222170887550279e-05, 5.7102799931704238e-06, 2.9417336534023489e-07,
                  -8.2608945357650596e-07, 7.4041097525122114e-08, 1.1042534165245168e-07, -1.7385216377228544e-08,
                  -1.4087687610758486e-08, 1.6382588813756229e-09, 1.1869466988819538e-09);
  }
};
#endif

// erfc(x) = y * 2^n for x >= 0.
template <class T>
struct ErfcParts {
  T y;
  typename FloatTraits<T>::Int n;
};

template <class T>
BCU_FN ErfcParts<T> erfc_parts(T x) {
  T k = Erfc<T>::center();
  T q = divide(two_sum(x, -k), two_sum(x, k)).hi;
  Pair<T> scaled = fast_two_sum(Erfc<T>::at_center(), q * Erfc<T>::poly(q));
  // x^2 = high^2 + (x - high)(x + high), the first exactly.
  T high = upper_half(x);
  ExpReduced<T> a = exp_reduce(-high * high, (x - high) * (x + high));
  Pair<T> e = fast_two_sum(T(1), a.r + (a.r * a.r * exp_poly(a.r) + a.r_lo));
  Pair<T> product = two_prod(e.hi, scaled.hi);
  product.lo += e.hi * scaled.lo + e.lo * scaled.hi;
  return {divide(product, two_sum(T(1), T(2) * x)).hi, a.n};
}

template <class T>
BCU_FN T erfc_impl(T x) {
  ErfcParts<T> p = erfc_parts(at_most(fabs(x), Erfc<T>::last()));
  T y = scale_pow2(p.y, p.n);
  y = x < T(0) ? T(2) - y : y;
  // q is badly conditioned near x = 0, where the difference is well conditioned.
  return fabs(x) < T(0.375) ? T(1) - (x + x * erf_poly(x * x)) : y;
}

// 1 - erfc(a) for a >= 0.9, right to the precision of the difference.
BCU_FN float one_minus_erfc(float a) {
  a = at_most(a, 4.0f);
  return 1.0f - exp_normal(a * log_erfc_poly(a));
}
#if BCU_HAS_F64
BCU_FN double one_minus_erfc(double a) {
  ErfcParts<double> p = erfc_parts(at_most(a, 6.0));
  return 1.0 - p.y * pow2<double>(p.n);
}
#endif

template <class T>
BCU_FN T erf_impl(T x) {
  T a = fabs(x);
  T y = a < T(1) ? a + a * erf_poly(a * a) : one_minus_erfc(a);
  return copysign(y, x);
}

}  // namespace detail

// ulp: 1.4 (f32) 1.5 (f64)
BCU_FN float erf(float x) { return detail::erf_impl(x); }
// ulp: 1.8 (f32) 1.7 (f64)
BCU_FN float erfc(float x) { return detail::erfc_impl(x); }
#if BCU_HAS_F64
BCU_FN double erf(double x) { return detail::erf_impl(x); }
BCU_FN double erfc(double x) { return detail::erfc_impl(x); }
#endif

}  // namespace baracuda::math
