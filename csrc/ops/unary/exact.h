// Signs, roundings, questions and bits of one number: exact, and most of them for integers too. See math.h.
#pragma once
#include "baracuda/math/math.h"
#include "baracuda/portable.h"

namespace baracuda::unary {

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

struct Neg {
  template <class T>
  BCU_FN T f(T x) {
    return Wrap<T>::negate(x);
  }
  template <class T>
  BCU_FN T df(T dy, T) {
    return -dy;
  }
};

struct Abs {
  template <class T>
  BCU_FN T f(T x) {
    return math::fabs(x);
  }
  BCU_FN int64_t f(int64_t x) { return x < 0 ? Wrap<int64_t>::negate(x) : x; }
  BCU_FN uint64_t f(uint64_t x) { return x; }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return x > T(0) ? dy : x < T(0) ? -dy : T(0);
  }
};

struct Sign {  // 0 for NaN, as torch
  template <class T>
  BCU_FN T f(T x) {
    return T(x > T(0)) - T(x < T(0));
  }
};

struct Square {
  template <class T>
  BCU_FN T f(T x) {
    return Wrap<T>::product(x, x);
  }
  template <class T>
  BCU_FN T df(T dy, T x) {
    return dy * x * T(2);
  }
};

struct Relu {  // NaN stays
  template <class T>
  BCU_FN T f(T x) {
    return x <= T(0) ? T(0) : x;
  }
  template <class T>
  BCU_FN T df(T dy, T y) {
    return y <= T(0) ? T(0) : dy;
  }
};

struct Floor {
  template <class T>
  BCU_FN T f(T x) {
    T r = math::rint(x);
    return r > x ? r - T(1) : r;
  }
  BCU_FN int64_t f(int64_t x) { return x; }
  BCU_FN uint64_t f(uint64_t x) { return x; }
};

struct Ceil {
  template <class T>
  BCU_FN T f(T x) {
    return -Floor::f(-x);
  }
  BCU_FN int64_t f(int64_t x) { return x; }
  BCU_FN uint64_t f(uint64_t x) { return x; }
};

struct Round {  // ties to even
  template <class T>
  BCU_FN T f(T x) {
    return math::rint(x);
  }
  BCU_FN int64_t f(int64_t x) { return x; }
  BCU_FN uint64_t f(uint64_t x) { return x; }
};

struct Trunc {
  template <class T>
  BCU_FN T f(T x) {
    return math::copysign(Floor::f(math::fabs(x)), x);
  }
  BCU_FN int64_t f(int64_t x) { return x; }
  BCU_FN uint64_t f(uint64_t x) { return x; }
};

// Questions, with a bool result. No integer is NaN or infinite, which the same expressions say.
struct IsNan {
  template <class T>
  BCU_FN bool f(T x) {
    return x != x;
  }
};

struct IsInf {
  template <class T>
  BCU_FN bool f(T x) {
    return (x == x) & (x - x != T(0));
  }
};

struct IsFinite {
  template <class T>
  BCU_FN bool f(T x) {
    return x - x == T(0);
  }
};

struct Signbit {  // also of -0 and NaN
  template <class T>
  BCU_FN bool f(T x) {
    return math::copysign(T(1), x) < T(0);
  }
  BCU_FN bool f(int64_t x) { return x < 0; }
  BCU_FN bool f(uint64_t) { return false; }
};

struct LogicalNot {
  template <class T>
  BCU_FN bool f(T x) {
    return x == T(0);
  }
};

struct BitwiseNot {
  template <class T>
  BCU_FN T f(T x) {
    return ~x;
  }
};

}  // namespace baracuda::unary
