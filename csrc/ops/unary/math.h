// Functions of one number. Each has its value f and, under it, the product of dy and its derivative, from the saved
// input x or the saved output y (the spec's slope says which). kFloats, kIntegers: what the op has a meaning for.
#pragma once
#include "baracuda/math/math.h"
#include "baracuda/portable.h"

namespace baracuda::unary {

struct FloatOp {
  static constexpr bool kFloats = true, kIntegers = false;
};
struct RealOp {
  static constexpr bool kFloats = true, kIntegers = true;
};
struct IntegerOp {
  static constexpr bool kFloats = false, kIntegers = true;
};

// Integer arithmetic wraps; done in unsigned, where that is defined.
template <class T>
struct Wrap {
  BCU_FN T negate(T x) { return -x; }
  BCU_FN T product(T a, T b) { return a * b; }
};
template <>
struct Wrap<int64_t> {
  BCU_FN int64_t negate(int64_t x) { return int64_t(0 - uint64_t(x)); }
  BCU_FN int64_t product(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }
};

// e^(-x^2) with the rounding of the square taken back, which the exponential would magnify.
template <class T>
BCU_FN T exp_minus_square(T x) {
  x = math::at_most(math::fabs(x), T(40));
  math::detail::Pair<T> square = math::detail::two_prod(x, x);
  T e = math::exp(-square.hi);
  return e - e * square.lo;
}

struct Neg : RealOp {
  template <class T>
  BCU_FN T f(T x) {
    return Wrap<T>::negate(x);
  }
  template <class T>
  BCU_FN T df(T dy, T) {
    return -dy;
  }
};

struct Abs : RealOp {
  BCU_FN float f(float x) { return math::fabs(x); }
  BCU_FN double f(double x) { return math::fabs(x); }
  BCU_FN int64_t f(int64_t x) { return x < 0 ? Wrap<int64_t>::negate(x) : x; }
  BCU_FN uint64_t f(uint64_t x) { return x; }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return x > T(0) ? dy : x < T(0) ? -dy : T(0);
  }
};

struct Sign : RealOp {  // 0 for NaN, as torch
  template <class T>
  BCU_FN T f(T x) {
    return T(x > T(0)) - T(x < T(0));
  }
};

struct Square : RealOp {
  template <class T>
  BCU_FN T f(T x) {
    return Wrap<T>::product(x, x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy * x * T(2);
  }
};

struct Relu : RealOp {  // NaN stays
  template <class T>
  BCU_FN T f(T x) {
    return x <= T(0) ? T(0) : x;
  }
  template <class T>
  BCU_FN T df(T dy, T y) {
    return y <= T(0) ? T(0) : dy;
  }
};

struct Floor : RealOp {
  template <class T>
  BCU_FN T f(T x) {
    T r = math::rint(x);
    return r > x ? r - T(1) : r;
  }
  BCU_FN int64_t f(int64_t x) { return x; }
  BCU_FN uint64_t f(uint64_t x) { return x; }
};

struct Ceil : RealOp {
  template <class T>
  BCU_FN T f(T x) {
    return -Floor::f(-x);
  }
  BCU_FN int64_t f(int64_t x) { return x; }
  BCU_FN uint64_t f(uint64_t x) { return x; }
};

struct Round : RealOp {  // ties to even
  template <class T>
  BCU_FN T f(T x) {
    return math::rint(x);
  }
  BCU_FN int64_t f(int64_t x) { return x; }
  BCU_FN uint64_t f(uint64_t x) { return x; }
};

struct Trunc : RealOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::copysign(Floor::f(math::fabs(x)), x);
  }
  BCU_FN int64_t f(int64_t x) { return x; }
  BCU_FN uint64_t f(uint64_t x) { return x; }
};

// Questions, with a bool result. No integer is NaN or infinite, which the same expressions say.
struct IsNan : RealOp {
  template <class T>
  BCU_FN bool f(T x) {
    return x != x;
  }
};

struct IsInf : RealOp {
  template <class T>
  BCU_FN bool f(T x) {
    return (x == x) & (x - x != T(0));
  }
};

struct IsFinite : RealOp {
  template <class T>
  BCU_FN bool f(T x) {
    return x - x == T(0);
  }
};

struct Signbit : RealOp {  // also of -0 and NaN
  template <class T>
  BCU_FN bool f(T x) {
    return math::copysign(T(1), x) < T(0);
  }
  BCU_FN bool f(int64_t x) { return x < 0; }
  BCU_FN bool f(uint64_t) { return false; }
};

struct LogicalNot : RealOp {
  template <class T>
  BCU_FN bool f(T x) {
    return x == T(0);
  }
};

struct BitwiseNot : IntegerOp {
  template <class T>
  BCU_FN T f(T x) {
    return ~x;
  }
};

struct Reciprocal : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return T(1) / x;
  }
  template <class T>
  BCU_FN T df(T dy, T y) {
    return -dy * y * y;
  }
};

struct Sqrt : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::sqrt(x);
  }
  template <class T>
  BCU_FN T df(T dy, T y) {
    return dy / (T(2) * y);
  }
};

struct Rsqrt : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::rsqrt(x);
  }
  template <class T>
  BCU_FN T df(T dy, T y) {
    return T(-0.5) * dy * y * y * y;
  }
};

struct Exp : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::exp(x);
  }
  template <class T>
  BCU_FN T df(T dy, T y) {
    return dy * y;
  }
};

struct Exp2 : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::exp2(x);
  }
  template <class T>
  BCU_FN T df(T dy, T y) {
    return dy * y * T(0.69314718055994530942);
  }
};

struct Expm1 : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::expm1(x);
  }
  template <class T>
  BCU_FN T df(T dy, T y) {
    return dy * (y + T(1));
  }
};

struct Log : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::log(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy / x;
  }
};

struct Log2 : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::log2(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy / x * T(1.44269504088896340736);
  }
};

struct Log10 : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::log10(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy / x * T(0.43429448190325182765);
  }
};

struct Log1p : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::log1p(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy / (T(1) + x);
  }
};

struct Sin : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::sin(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy * math::cos(x);
  }
};

struct Cos : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::cos(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return -dy * math::sin(x);
  }
};

struct Tan : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::tan(x);
  }
  template <class T>
  BCU_FN T df(T dy, T y) {
    return dy * (T(1) + y * y);
  }
};

struct Asin : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::asin(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy / math::sqrt((T(1) - x) * (T(1) + x));
  }
};

struct Acos : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::acos(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return -Asin::df(dy, x);
  }
};

struct Atan : FloatOp {
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

struct Deg2rad : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return x * T(0.01745329251994329577);
  }
  template <class T>
  BCU_FN T df(T dy, T) {
    return f(dy);
  }
};

struct Rad2deg : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return x * T(57.29577951308232088);
  }
  template <class T>
  BCU_FN T df(T dy, T) {
    return f(dy);
  }
};

struct Sinh : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::sinh(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy * math::cosh(x);
  }
};

struct Cosh : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::cosh(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy * math::sinh(x);
  }
};

struct Tanh : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::tanh(x);
  }
  template <class T>
  BCU_FN T df(T dy, T y) {
    return dy * ((T(1) - y) * (T(1) + y));
  }
};

struct Erf : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::erf(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy * (T(1.12837916709551257390) * exp_minus_square(x));
  }
};

struct Erfc : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::erfc(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return -Erf::df(dy, x);
  }
};

struct Sigmoid : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::sigmoid(x);
  }
  template <class T>
  BCU_FN T df(T dy, T y) {
    return dy * (y * (T(1) - y));
  }
};

struct Silu : FloatOp {
  template <class T>
  BCU_FN T f(T x) {
    return math::silu(x);
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

struct Gelu : FloatOp {  // x Phi(x), whose tail does not cancel
  template <class T>
  BCU_FN T f(T x) {
    return math::gelu(x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy * math::gelu_slope(within_64(x)).slope;
  }
};

struct GeluTanh : FloatOp {  // x sigmoid(2u), u = sqrt(2 / pi) (x + 0.044715 x^3): the same as 0.5 x (1 + tanh(u))
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

struct Softplus {  // log(1 + e^(beta x)) / beta; x itself where beta x > threshold
  static constexpr int kNumbers = 2;
  template <class T>
  BCU_FN T f(T x, T beta, T threshold) {
    T z = x * beta;
    return z > threshold ? x : math::log1p(math::exp(z)) / beta;
  }
  template <class T>
  BCU_FN T df(T dy, T x, T beta, T threshold) {
    T z = x * beta;
    return z > threshold ? dy : dy * math::sigmoid(z);
  }
};

}  // namespace baracuda::unary
