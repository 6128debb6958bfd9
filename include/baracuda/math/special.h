// erfinv, lgamma, digamma, trigamma.
// Method: erfinv(x) / x is a polynomial in w = -log(1 - x^2), or in sqrt(w) for the tails. lgamma and digamma come from
// polynomials on [1, 2], divided by their roots, with the recurrence up to 8 and the asymptotic series from there on;
// negative arguments are reflected.
#pragma once
#include "baracuda/math/log.h"
#include "baracuda/math/trig.h"

namespace baracuda::math {
namespace detail {

// Fits "erfinv_near_f32", "erfinv_far_f32"; the same in f64, where there are two tails.
BCU_FN float erfinv_ratio(float w) {
  float t = w - 2.5f, s = sqrt(w) - 3.0f;
  float near = horner(t, 1.50140941f, 0.24664028f, -0.00417738827f, -0.00125274365f, 0.000218345813f, -4.96213261e-06f,
                      -3.46311481e-06f, 4.65863707e-07f, 2.32701822e-08f, -8.76586093e-09f);
  float far = horner(s, 2.83297682f, 1.00167513f, 0.00944571011f, -0.00763938669f, 0.00568291638f, -0.0035869889f,
                     0.00149665331f, -7.69557228e-05f, -0.000319490209f, 0.000129481574f);
  return w < 5.0f ? near : far;
}
#if BCU_HAS_F64
BCU_FN double erfinv_ratio(double w) {
  double t = w - 3.125, root = sqrt(w), s = root - 3.25, r = root - 5.0;
  double near =
      horner(t, 1.6536545626831027, 0.24015818242558826, -0.0060336708714277586, -0.00074070253415396009,
             0.00018673420802427495, -1.3882523395775175e-05, -1.3654691844670276e-06, 4.2347881905444509e-07,
             -2.9070382746454152e-08, -4.1126619598886836e-09, 1.0512183838683141e-09, -5.4142398317680428e-11,
             -1.2976953666932495e-11, 2.63035705040701e-12, -8.1171023331697957e-14, -3.9990256073521533e-14,
             6.5948215460350777e-15, -4.2806076618938915e-17, -1.3004883940459515e-16, 1.5755151851635798e-17,
             1.1448540738881736e-18, -3.5734614046721472e-19, -1.0177169310479739e-21, 3.3718695069890949e-21);
  double middle =
      horner(s, 3.0838856104922208, 1.0052589676941657, 0.0053709145535712844, -0.0037512085082640708,
             0.0024914420969986144, -0.0016882755342190658, 0.00095328936346998269, -0.00035503783125713501,
             2.4031259205240202e-05, 6.828725182630321e-05, -4.731899377042068e-05, 1.2464420697992547e-05,
             2.9257534855713738e-06, -3.9840467420358437e-06, 1.4986788250491572e-06, -3.0309905426843114e-08,
             -2.7132064875589362e-07, 1.3397637286636725e-07, 6.9042236849555967e-10, -1.6198328886833615e-08);
  double far = horner(r, 4.8499064014085844, 1.0103004648645459, -0.00013871931835103348, -0.00021503011985274121,
                      7.5995277332141904e-05, -1.968177039650193e-05, 4.526060246713431e-06, -9.9303103551701397e-07,
                      2.2901380770185121e-07, -6.7551485086908406e-08, 2.9129289677013568e-08, -1.5262586776871315e-08,
                      7.6371903062543063e-09, -3.4646428362740658e-09, 1.4947657606320763e-09, -4.4061305142828003e-10,
                      -2.3966095283104626e-11, 4.341215088292473e-11);
  return w < 6.25 ? near : w < 16.0 ? middle : far;
}
#endif

template <class T>
BCU_FN T erfinv_impl(T x) {
  T a = fabs(x), gap = (T(1) - a) * (T(1) + a);
  // The logarithm of what is left of 1 is least exact where it matters least.
  T w = -log_impl(gap > T(0) ? gap : T(1));
  T y = x * erfinv_ratio(w);
  y = a == T(1) ? copysign(infinity<T>(), x) : y;
  return a > T(1) ? quiet_nan<T>() : x != x ? x : y;
}

// log(gamma(x)) / ((x - 1) (x - 2)) and digamma(x) / (x - root) at x = 1.5 + f; fits "lgamma" and "digamma".
BCU_FN float lgamma_poly(float f) {
  return horner(f, 0.483128965f, -0.145959899f, 0.0629110485f, -0.0313079916f, 0.016808223f, -0.00943649281f,
                0.00532519212f, -0.00311588589f, 0.00244834949f, -0.00152644317f);
}
BCU_FN float digamma_poly(float f) {
  return horner(f, 0.951055884f, -0.423627496f, 0.24054262f, -0.148398787f, 0.0949820802f, -0.0620570742f,
                0.0408793874f, -0.0257810261f, 0.0169801861f, -0.0163840689f, 0.0111190025f);
}
#if BCU_HAS_F64
BCU_FN double lgamma_poly(double f) {
  return horner(f, 0.48312895054098087, -0.14595989591430608, 0.062911401074564374, -0.031308487501009383,
                0.016797098631275997, -0.0094256224486353405, 0.0054464578390317365, -0.0032120740693615491,
                0.0019229163152502495, -0.0011644146798034871, 0.00071151903069180367, -0.00043799182727506907,
                0.000271314074090952, -0.00016892807877894419, 0.00010535323380246836, -6.6088120966338978e-05,
                4.3034121535795149e-05, -2.7371060891552376e-05, 1.3173879127105868e-05, -8.0535032785197304e-06,
                1.2149732522269422e-05, -7.9907312987951084e-06);
}
BCU_FN double digamma_poly(double f) {
  return horner(f, 0.95105587603183284, -0.42362742128146058, 0.24054248424078722, -0.14840492305388028,
                0.094988724452849754, -0.06192213327554269, 0.040760833943391951, -0.026975796657625482,
                0.017907248235558244, -0.011908220153171343, 0.0079270233276384841, -0.0052799366359100831,
                0.0035180887033518745, -0.0023454998352479659, 0.0015635034109662414, -0.0010364320296958646,
                0.00069028207650290846, -0.00048603456460724761, 0.00032588096889441795, -0.00014465655798352143,
                9.329470007909038e-05, -0.00017833320742887407, 0.00012117362303560522);
}
#endif

// The root of digamma, less 1.
template <class T>
struct DigammaRoot;
template <>
struct DigammaRoot<float> {
  BCU_FN Pair<float> less_one() { return {0.461632133f, 1.24381501e-08f}; }
};
#if BCU_HAS_F64
template <>
struct DigammaRoot<double> {
  BCU_FN Pair<double> less_one() { return {0.46163214496836236, -1.5522348162858677e-17}; }
};
#endif

// From here on the asymptotic series are as good as exact.
template <class T>
BCU_FN T series_start() {
  return T(8);
}

// x less the largest integer below it, for 0 <= x < 8; no bits are lost.
template <class T>
BCU_FN T fraction(T x) {
  T n = rint(x);
  return x - (n > x ? n - T(1) : n);
}

// pi times the distance to the nearest integer.
template <class T>
BCU_FN T pi_times_rest(T x) {
  return T(3.14159265358979323846) * (x - rint(x));
}

// x >= 0
template <class T>
BCU_FN T lgamma_positive(T x) {
  T low = at_most(x, series_start<T>()), u = fraction(low);
  // gamma(x) = (x - 1) (x - 2) ... (1 + u) gamma(1 + u), or gamma(1 + x) / x
  T product = low < T(1) ? low : T(1);
  for (int k = 1; k <= 6; ++k) {
    T factor = low - T(k);
    product *= factor >= T(1) ? factor : T(1);
  }
  T large = at_least(x, series_start<T>()), y = T(1) / large, z = y * y;
  T log_of = log_impl(x < series_start<T>() ? product : large);
  T near = u * (u - T(1)) * lgamma_poly(u - T(0.5)) + (low < T(1) ? -log_of : log_of);
  T series = y * horner(z, T(8.33333333333333333333e-02), T(-2.77777777777777777778e-03), T(7.93650793650793650794e-04),
                        T(-5.95238095238095238095e-04), T(8.41750841750841750842e-04), T(-1.91752691752691752692e-03),
                        T(6.41025641025641025641e-03), T(-2.95506535947712418301e-02));
  T far = (large - T(0.5)) * (log_of - T(1)) + (T(0.41893853320467274178) + series);
  return x < series_start<T>() ? near : x == infinity<T>() ? x : x != x ? x : far;
}

// gamma(-a) gamma(1 + a) = -pi / sin(pi a)
template <class T>
BCU_FN T lgamma_impl(T x) {
  bool below = x < T(0);
  T other = lgamma_positive(below ? T(1) - x : x);
  T s = sin(pi_times_rest(x)) * T(0.31830988618379067154);
  T reflected = -log_impl(fabs(s)) - other;
  // At a pole the other term may be infinite, too.
  reflected = (s == T(0)) | (s != s) ? infinity<T>() : reflected;
  return below ? reflected : other;
}

// x > 0
template <class T>
BCU_FN T digamma_positive(T x) {
  T low = at_most(x, series_start<T>()), u = fraction(low);
  Pair<T> root = DigammaRoot<T>::less_one();
  T sum = T(0);
  for (int k = 6; k >= 1; --k) {
    T at = low - T(k);
    sum += at >= T(1) ? T(1) / at : T(0);
  }
  sum -= low < T(1) ? T(1) / low : T(0);
  T near = ((u - root.hi) - root.lo) * digamma_poly(u - T(0.5)) + sum;
  T large = at_least(x, series_start<T>()), y = T(1) / large, z = y * y;
  T series = z * horner(z, T(8.33333333333333333333e-02), T(-8.33333333333333333333e-03), T(3.96825396825396825397e-03),
                        T(-4.16666666666666666667e-03), T(7.57575757575757575758e-03), T(-2.10927960927960927961e-02),
                        T(8.33333333333333333333e-02), T(-4.43259803921568627451e-01), T(3.05395433027011974380e+00));
  T far = log_impl(large) - (T(0.5) * y + series);
  return x < series_start<T>() ? near : far;
}

// digamma(x) = digamma(1 - x) - pi / tan(pi x); infinite at 0, where its sign is known, NaN at the other poles.
template <class T>
BCU_FN T digamma_impl(T x) {
  bool below = x < T(0);
  T y = digamma_positive(below ? T(1) - x : x);
  T angle = pi_times_rest(x);
  T reflected = y - T(3.14159265358979323846) / tan(angle);
  reflected = angle == T(0) ? quiet_nan<T>() : reflected;
  return x == T(0) ? copysign(infinity<T>(), -x) : x != x ? x : below ? reflected : y;
}

// The derivative of digamma: terms of one sign only, but for the reflection, where they hardly cancel.
template <class T>
BCU_FN T trigamma_positive(T x) {
  T sum = T(0), shifted = x;
  for (int k = 0; k < 8; ++k) {
    bool low = x < series_start<T>() - T(k);
    T q = T(1) / (x + T(k));
    sum += low ? q * q : T(0);
    shifted += low ? T(1) : T(0);
  }
  T y = T(1) / shifted, z = y * y;
  T series = horner(z, T(1.66666666666666666667e-01), T(-3.33333333333333333333e-02), T(2.38095238095238095238e-02),
                    T(-3.33333333333333333333e-02), T(7.57575757575757575758e-02), T(-2.53113553113553113553e-01),
                    T(1.16666666666666666667e+00), T(-7.09215686274509803922e+00), T(5.49711779448621553885e+01),
                    T(-5.29124242424242424242e+02), T(6.19212318840579710145e+03));
  return sum + (y + (T(0.5) * z + y * z * series));
}

template <class T>
BCU_FN T trigamma_impl(T x) {
  bool below = x < T(0);
  T y = trigamma_positive(below ? T(1) - x : x);
  T s = T(3.14159265358979323846) / sin(pi_times_rest(x));
  T reflected = s * s - y;
  return x == -infinity<T>() ? quiet_nan<T>() : below ? reflected : y;
}

}  // namespace detail

// ulp: 3.5 (f32) 3 (f64)
BCU_FN float erfinv(float x) { return detail::erfinv_impl(x); }
// The bounds of these hold for x > 0; below, the error is that of two terms that may cancel.
// ulp: 6 (f32) 6 (f64)
BCU_FN float lgamma(float x) { return detail::lgamma_impl(x); }
// ulp: 6 (f32) 6 (f64)
BCU_FN float digamma(float x) { return detail::digamma_impl(x); }
// ulp: 6 (f32) 6 (f64)
BCU_FN float trigamma(float x) { return detail::trigamma_impl(x); }
#if BCU_HAS_F64
BCU_FN double erfinv(double x) { return detail::erfinv_impl(x); }
BCU_FN double lgamma(double x) { return detail::lgamma_impl(x); }
BCU_FN double digamma(double x) { return detail::digamma_impl(x); }
BCU_FN double trigamma(double x) { return detail::trigamma_impl(x); }
#endif

}  // namespace baracuda::math
