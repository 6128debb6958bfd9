// Activations: pieces of lines, exponentials, and those that take numbers besides. See math.h.
#pragma once
#include "baracuda/math/math.h"
#include "baracuda/portable.h"
#include "ops/unary/exact.h"

namespace baracuda::unary {

struct Relu6 {
  template <class T>
  BCU_FN T f(T x) {
    return x < T(0) ? T(0) : x > T(6) ? T(6) : x;
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return (x <= T(0)) | (x >= T(6)) ? T(0) : dy;
  }
};

struct HardTanh {
  template <class T>
  BCU_FN T f(T x, T low, T high) {
    T y = x < low ? low : x;
    return y > high ? high : y;
  }
  template <class T>
  BCU_FN T df(T dy, T x, T low, T high) {
    return (x <= low) | (x >= high) ? T(0) : dy;
  }
};

struct Threshold {
  template <class T>
  BCU_FN T f(T x, T threshold, T value) {
    return x <= threshold ? value : x;
  }
  template <class T>
  BCU_FN T df(T dy, T x, T threshold, T) {
    return x <= threshold ? T(0) : dy;
  }
};

struct LeakyRelu {
  template <class T>
  BCU_FN T f(T x, T slope) {
    return x > T(0) ? x : x * slope;
  }
  template <class T>
  BCU_FN T df(T dy, T x, T slope) {
    return x > T(0) ? dy : dy * slope;
  }
};

struct HardShrink {
  template <class T>
  BCU_FN T f(T x, T lambd) {
    return (x >= -lambd) & (x <= lambd) ? T(0) : x;
  }
  template <class T>
  BCU_FN T df(T dy, T x, T lambd) {
    return (x >= -lambd) & (x <= lambd) ? T(0) : dy;
  }
};

struct SoftShrink {
  template <class T>
  BCU_FN T f(T x, T lambd) {
    return x > lambd ? x - lambd : x < -lambd ? x + lambd : x * T(0);
  }
  template <class T>
  BCU_FN T df(T dy, T x, T lambd) {
    return HardShrink::df(dy, x, lambd);
  }
};

struct HardSigmoid {  // clip(x + 3, 0, 6) / 6
  template <class T>
  BCU_FN T f(T x) {
    return Relu6::f(x + T(3)) / T(6);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return (x > T(-3)) & (x < T(3)) ? dy / T(6) : T(0);
  }
};

struct HardSwish {
  template <class T>
  BCU_FN T f(T x) {
    return x * (Relu6::f(x + T(3)) / T(6));
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return x <= T(-3) ? T(0) : x >= T(3) ? dy : dy * (x / T(3) + T(0.5));  // NaN stays
  }
};

struct Elu {
  template <class T>
  BCU_FN T f(T x, T alpha) {
    return x > T(0) ? x : alpha * math::expm1(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x, T alpha) {
    return x > T(0) ? dy : dy * (alpha * math::exp(x));
  }
};

struct Celu {
  template <class T>
  BCU_FN T f(T x, T alpha) {
    return x > T(0) ? x : alpha * math::expm1(x / alpha);
  }
  template <class T>
  BCU_FN T df(T dy, T x, T alpha) {
    return x > T(0) ? dy : dy * math::exp(x / alpha);
  }
};

struct Selu {
  template <class T>
  BCU_FN T f(T x) {
    return x > T(0) ? T(1.05070098735548049342) * x : T(1.75809934084737685994) * math::expm1(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy * (x > T(0) ? T(1.05070098735548049342) : T(1.75809934084737685994) * math::exp(x));
  }
};

// With e = e^-|x|: tanh(ln(1 + e^x)) = (1 + 2e) / (1 + 2e + 2e^2) above zero and e (2 + e) / (2 + 2e + e^2) below.
struct Mish {
  template <class T>
  BCU_FN T f(T x) {
    T raised = math::detail::raised_exp_minus(math::fabs(x)), e = raised * math::detail::unraised<T>();
    T up = x * ((T(1) + T(2) * e) / (T(1) + T(2) * e * (T(1) + e)));
    T down = (x * raised) * ((T(2) + e) / (T(2) + e * (T(2) + e)) * math::detail::unraised<T>());
    return x < T(0) ? down : up;
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    // Past 1000 e is 0, and products of infinity and zero are avoided.
    T a = math::at_most(math::fabs(x), T(1000));
    T raised = math::detail::raised_exp_minus(a), e = raised * math::detail::unraised<T>();
    T d_up = T(1) + T(2) * e * (T(1) + e), d_down = T(2) + e * (T(2) + e);
    T up = (T(1) + T(2) * e) / d_up + a * (T(4) * e * (e * (T(1) + e)) / (d_up * d_up));
    T down = raised * ((T(2) + e) / d_down - a * (T(4) * (T(1) + e) / (d_down * d_down)));
    return dy * (x < T(0) ? down * math::detail::unraised<T>() : up);
  }
};

struct Softsign {
  template <class T>
  BCU_FN T f(T x) {
    return x / (T(1) + math::fabs(x));
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    T q = T(1) / (T(1) + math::fabs(x));
    return dy * q * q;
  }
};

struct LogSigmoid {
  template <class T>
  BCU_FN T f(T x) {
    return (x < T(0) ? x : T(0)) - math::log1p(math::exp(-math::fabs(x)));
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy * math::sigmoid(-x);
  }
};

struct TanhShrink {  // x - tanh(x), which cancels for small x: there the polynomial of the difference
  template <class T>
  BCU_FN T f(T x) {
    T z = x * x;
    return math::fabs(x) < T(0.5) ? -x * (z * math::detail::tanh_poly(z)) : x - math::tanh(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    T t = math::tanh(x);
    return dy * t * t;
  }
};

struct Softplus {  // log(1 + e^(beta x)) / beta; x itself where beta x > threshold
  template <class T>
  BCU_FN T f(T x, T beta, T threshold) {
    // e^z alone would overflow where the threshold is beyond its range.
    T z = x * beta, above = z > T(0) ? x : T(0);
    return z > threshold ? x : above + math::log1p(math::exp(-math::fabs(z))) / beta;
  }
  template <class T>
  BCU_FN T df(T dy, T x, T beta, T threshold) {
    T z = x * beta;
    return z > threshold ? dy : dy * math::sigmoid(z);
  }
};

struct Sigmoid {
  template <class T>
  BCU_FN T f(T x) {
    return math::sigmoid(x);
  }
  template <class T>
  BCU_FN T df(T dy, T y) {
    return dy * (y * (T(1) - y));
  }
};

struct Silu {
  template <class T>
  BCU_FN T f(T x) {
    return with_nan_of(x, math::silu(x));
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy * math::silu_slope(x).slope;
  }
};

// Past 64 the slopes below have reached their limits, and products of infinity and zero are avoided.
template <class T>
BCU_FN T within_64(T x) {
  return math::at_least(math::at_most(x, T(64)), T(-64));
}

struct Gelu {  // x Phi(x), whose tail does not cancel
  template <class T>
  BCU_FN T f(T x) {
    return math::gelu(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy * math::gelu_slope(within_64(x)).slope;
  }
};

struct GeluTanh {  // x sigmoid(2u), u = sqrt(2 / pi) (x + 0.044715 x^3): the same as 0.5 x (1 + tanh(u))
  template <class T>
  BCU_FN T f(T x) {
    return math::sigmoid_product(x, twice_u(x));
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    x = within_64(x);
    math::Slope<T> s = math::fast_sigmoid_slope(twice_u(x));
    return dy * (s.value + x * s.slope * (T(1.59576912160573071176) + T(0.21406444881780073) * x * x));
  }
  template <class T>
  BCU_FN T twice_u(T x) {
    return x * (T(1.59576912160573071176) + T(0.07135481627260024877) * x * x);
  }
};

}  // namespace baracuda::unary
