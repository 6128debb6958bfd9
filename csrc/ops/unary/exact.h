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
  BCU_FN T sum(T a, T b) { return a + b; }
};
template <>
struct Wrap<int64_t> {
  BCU_FN int64_t negate(int64_t x) { return int64_t(0 - uint64_t(x)); }
  BCU_FN int64_t product(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }
  BCU_FN int64_t sum(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
};

// A result r of x, which for NaN is that NaN: of a sign and with a payload that do not depend on the loop it is in.
template <class T>
BCU_FN T with_nan_of(T x, T r) {
  return x != x ? x : r;
}

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

struct Frac {  // what trunc takes off
  template <class T>
  BCU_FN T f(T x) {
    return x - Trunc::f(x);
  }
  template <class T>
  BCU_FN T df(T dy, T) {
    return dy;
  }
};

struct Step {  // 1 above zero; 0 for NaN
  template <class T>
  BCU_FN T f(T x) {
    return T(x > T(0));
  }
};

// To the nearest multiple of 1 / power, or of -power where power is negative; ties to even. What has no digits there
// stays as it is.
struct RoundDecimals {
  template <class T>
  BCU_FN T f(T x, T power) {
    T scaled = power > T(0) ? x * power : x / -power, n = math::rint(scaled);
    T y = power > T(0) ? n / power : n * -power;
    return math::fabs(scaled) < math::infinity<T>() ? y : x;
  }
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

// Counts of bits; integers are carried in 64 bits, of which `bits` are the element's.
BCU_FN uint64_t ones(uint64_t x) {
  x -= (x >> 1) & 0x5555555555555555u;
  x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  x += x >> 8;
  x += x >> 16;
  x += x >> 32;
  return x & 0x7fu;
}
BCU_FN uint64_t lowest(uint64_t x, uint64_t bits) { return x & (~uint64_t(0) >> (uint64_t(64) - bits)); }

struct Popcount {
  template <class T>
  BCU_FN T f(T x, T bits) {
    return T(ones(lowest(uint64_t(x), uint64_t(bits))));
  }
};

struct Clz {  // leading zeros
  template <class T>
  BCU_FN T f(T x, T bits) {
    uint64_t v = lowest(uint64_t(x), uint64_t(bits));
    v |= v >> 1;
    v |= v >> 2;
    v |= v >> 4;
    v |= v >> 8;
    v |= v >> 16;
    v |= v >> 32;
    return bits - T(ones(v));
  }
};

struct Ctz {  // trailing zeros
  template <class T>
  BCU_FN T f(T x, T bits) {
    uint64_t v = uint64_t(x);
    T n = T(ones(~v & (v - uint64_t(1))));
    return n < bits ? n : bits;
  }
};

}  // namespace baracuda::unary
