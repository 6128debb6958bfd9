// Functions of one number. Each has its value f and, under it, the product of dy and its derivative, from the saved
// input x or the saved output y (the slope in the spec says which). f_near and df_near give the same bits for arguments
// that are math::is_near, sooner.
#pragma once
#include "baracuda/math/math.h"
#include "baracuda/portable.h"
#include "ops/unary/activation.h"
#include "ops/unary/exact.h"

namespace baracuda::unary {

// e^(-x^2) with the rounding of the square taken back, which the exponential would magnify.
template <class T>
BCU_FN T exp_minus_square(T x) {
  x = math::at_most(math::fabs(x), T(40));
  math::detail::Pair<T> square = math::detail::two_prod(x, x);
  T e = math::exp(-square.hi);
  return e - e * square.lo;
}

struct Reciprocal {
  template <class T>
  BCU_FN T f(T x) {
    return T(1) / x;
  }
  template <class T>
  BCU_FN T df(T dy, T y) {
    return -dy * y * y;
  }
};

struct Sqrt {
  template <class T>
  BCU_FN T f(T x) {
    return math::sqrt(x);
  }
  template <class T>
  BCU_FN T df(T dy, T y) {
    return dy / (T(2) * y);
  }
};

struct Rsqrt {
  template <class T>
  BCU_FN T f(T x) {
    return math::rsqrt(x);
  }
  template <class T>
  BCU_FN T df(T dy, T y) {
    return dy * y * (T(-0.5) * y * y);
  }
};

struct Exp {
  template <class T>
  BCU_FN T f(T x) {
    return math::exp(x);
  }
  template <class T>
  BCU_FN T df(T dy, T y) {
    return dy * y;
  }
};

struct Exp2 {
  template <class T>
  BCU_FN T f(T x) {
    return math::exp2(x);
  }
  template <class T>
  BCU_FN T df(T dy, T y) {
    return dy * (y * T(0.69314718055994530942));  // dy y alone may overflow
  }
};

struct Expm1 {
  template <class T>
  BCU_FN T f(T x) {
    return math::expm1(x);
  }
  template <class T>
  BCU_FN T df(T dy, T y) {
    return dy * (y + T(1));
  }
};

struct Log {
  template <class T>
  BCU_FN T f(T x) {
    return math::log(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy / x;
  }
};

struct Log2 {
  template <class T>
  BCU_FN T f(T x) {
    return math::log2(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy / x * T(1.44269504088896340736);
  }
};

struct Log10 {
  template <class T>
  BCU_FN T f(T x) {
    return math::log10(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy * T(0.43429448190325182765) / x;  // dy / x alone may overflow
  }
};

struct Log1p {
  template <class T>
  BCU_FN T f(T x) {
    return math::log1p(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy / (T(1) + x);
  }
};

struct Sin {
  template <class T>
  BCU_FN T f(T x) {
    return math::sin(x);
  }
  template <class T>
  BCU_FN T f_near(T x) {
    return math::sin_near(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy * math::cos(x);
  }
  template <class T>
  BCU_FN T df_near(T dy, T x) {
    return dy * math::cos_near(x);
  }
};

struct Cos {
  template <class T>
  BCU_FN T f(T x) {
    return math::cos(x);
  }
  template <class T>
  BCU_FN T f_near(T x) {
    return math::cos_near(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return -dy * math::sin(x);
  }
  template <class T>
  BCU_FN T df_near(T dy, T x) {
    return -dy * math::sin_near(x);
  }
};

struct Tan {
  template <class T>
  BCU_FN T f(T x) {
    return math::tan(x);
  }
  template <class T>
  BCU_FN T f_near(T x) {
    return math::tan_near(x);
  }
  template <class T>
  BCU_FN T df(T dy, T y) {
    return dy * (T(1) + y * y);
  }
};

struct Asin {
  template <class T>
  BCU_FN T f(T x) {
    return math::asin(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy / math::sqrt((T(1) - x) * (T(1) + x));
  }
};

struct Acos {
  template <class T>
  BCU_FN T f(T x) {
    T y = math::acos(x);
    return y == y ? y : with_nan_of(x, math::quiet_nan<T>());
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return -Asin::df(dy, x);
  }
};

struct Atan {
  template <class T>
  BCU_FN T f(T x) {
    return math::atan(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {  // dy / (1 + x^2), from 1 / x where the square would overflow
    bool large = math::fabs(x) > T(1);
    T t = large ? T(1) / x : x, q = dy / (T(1) + t * t);
    return large ? q * t * t : q;
  }
};

struct Deg2rad {
  template <class T>
  BCU_FN T f(T x) {
    return x * T(0.01745329251994329577);
  }
  template <class T>
  BCU_FN T df(T dy, T) {
    return f(dy);
  }
};

struct Rad2deg {
  template <class T>
  BCU_FN T f(T x) {
    return x * T(57.29577951308232088);
  }
  template <class T>
  BCU_FN T df(T dy, T) {
    return f(dy);
  }
};

struct Sinh {
  template <class T>
  BCU_FN T f(T x) {
    return math::sinh(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy * math::cosh(x);
  }
};

struct Cosh {
  template <class T>
  BCU_FN T f(T x) {
    return math::cosh(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy * math::sinh(x);
  }
};

struct Tanh {
  template <class T>
  BCU_FN T f(T x) {
    return math::tanh(x);
  }
  template <class T>
  BCU_FN T df(T dy, T y) {
    return dy * ((T(1) - y) * (T(1) + y));
  }
};

struct Erf {
  template <class T>
  BCU_FN T f(T x) {
    return with_nan_of(x, math::erf(x));
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy * (T(1.12837916709551257390) * exp_minus_square(x));
  }
};

struct Erfc {
  template <class T>
  BCU_FN T f(T x) {
    return with_nan_of(x, math::erfc(x));
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return -Erf::df(dy, x);
  }
};

struct ErfInv {
  template <class T>
  BCU_FN T f(T x) {
    return math::erfinv(x);
  }
  template <class T>
  BCU_FN T df(T dy, T y) {  // sqrt(pi) / 2 e^(y^2), the square's rounding put back
    math::detail::Pair<T> square = math::detail::two_prod(y, y);
    T e = math::exp(square.hi);
    bool finite = e < math::infinity<T>();
    return dy * T(0.88622692545275801365) * (finite ? e + e * square.lo : e);
  }
};

struct LGamma {
  template <class T>
  BCU_FN T f(T x) {
    return math::lgamma(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy * math::digamma(x);
  }
};

struct DiGamma {
  template <class T>
  BCU_FN T f(T x) {
    return math::digamma(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy * math::trigamma(x);
  }
};

struct Cube {
  template <class T>
  BCU_FN T f(T x) {
    return x * x * x;
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy * x * x * T(3);
  }
};

struct Cbrt {
  template <class T>
  BCU_FN T f(T x) {
    return math::cbrt(x);
  }
  template <class T>
  BCU_FN T df(T dy, T y) {
    return dy / (T(3) * y * y);
  }
};

struct Asinh {
  template <class T>
  BCU_FN T f(T x) {
    return math::asinh(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {  // dy / sqrt(1 + x^2), from 1 / x where the square would overflow
    bool large = math::fabs(x) > T(1);
    T t = large ? T(1) / x : x, q = dy / math::sqrt(T(1) + t * t);
    return large ? q * math::fabs(t) : q;
  }
};

struct Acosh {
  template <class T>
  BCU_FN T f(T x) {
    return math::acosh(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy / (math::sqrt(x - T(1)) * math::sqrt(x + T(1)));
  }
};

struct Atanh {
  template <class T>
  BCU_FN T f(T x) {
    return math::atanh(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy / ((T(1) - x) * (T(1) + x));
  }
};

struct Sinc {  // sin(pi x) / (pi x)
  template <class T>
  BCU_FN T f(T x) {
    T n = math::rint(x), s = math::sin_near(T(3.14159265358979323846) * (x - n));
    s = odd(n) ? -s : s;
    return x == T(0) ? T(1) : s / (T(3.14159265358979323846) * x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {  // (cos(pi x) - sinc(x)) / x; its series where that cancels
    T n = math::rint(x), c = math::cos_near(T(3.14159265358979323846) * (x - n));
    T large = ((odd(n) ? -c : c) - f(x)) / x;
    T z = T(9.86960440108935861883) * x * x;
    T series = math::detail::horner(
        z, T(-3.33333333333333333333e-01), T(3.33333333333333333333e-02), T(-1.19047619047619047619e-03),
        T(2.20458553791887125220e-05), T(-2.50521083854417187751e-07), T(1.92708526041859375193e-09),
        T(-1.07060292245477430663e-11), T(4.49833161535619456566e-14), T(-1.47971434715664294923e-16));
    return dy * (z < T(1) ? T(9.86960440108935861883) * x * series : large);
  }
  template <class T>
  BCU_FN bool odd(T n) {
    return math::rint(n * T(0.5)) != n * T(0.5);
  }
};

struct Logit {  // ln(z / (1 - z)), z being x held within [eps, 1 - eps] unless eps is negative
  template <class T>
  BCU_FN T f(T x, T eps) {
    T z = eps < T(0) ? x : math::at_most(math::at_least(x, eps), T(1) - eps);
    T near_half = math::log1p((T(2) * z - T(1)) / (T(1) - z));
    return (z > T(0.25)) & (z < T(0.75)) ? near_half : math::log(z / (T(1) - z));
  }
  template <class T>
  BCU_FN T df(T dy, T x, T eps) {
    T low = eps < T(0) ? T(0) : eps;
    T outside = eps < T(0) ? math::quiet_nan<T>() : T(0);
    return (x < low) | (x > T(1) - low) ? outside : dy / (x * (T(1) - x));
  }
};

struct NanToNum {
  template <class T>
  BCU_FN T f(T x, T nan, T above, T below) {
    T y = x == math::infinity<T>() ? above : x == -math::infinity<T>() ? below : x;
    return x != x ? nan : y;
  }
  template <class T>
  BCU_FN T df(T dy, T x, T, T, T) {
    return x - x == T(0) ? dy : T(0);
  }
};

struct Affine {  // scale x + shift
  template <class T>
  BCU_FN T f(T x, T scale, T shift) {
    return Wrap<T>::sum(Wrap<T>::product(x, scale), shift);
  }
  template <class T>
  BCU_FN T df(T dy, T, T scale, T) {
    return dy * scale;
  }
};

}  // namespace baracuda::unary
