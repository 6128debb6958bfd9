// Functions of three operands: the value f, and under it the gradients.
#pragma once
#include "baracuda/math/math.h"
#include "baracuda/portable.h"
#include "core/values.h"

namespace baracuda::ternary {

struct Where {
  template <class T>
  BCU_FN T f(T condition, T a, T b) {
    return condition != T(0) ? a : b;
  }
  template <class T>
  BCU_FN Values<T, 2> df(T dy, T condition) {
    return {f(condition, dy, T(0)), f(condition, T(0), dy)};
  }
};

struct Clamp {  // NaN in x or in a bound wins; the upper bound wins over the lower
  template <class T>
  BCU_FN T f(T x, T low, T high) {
    T y = x < low || low != low ? low : x;
    y = y > high || high != high ? high : y;
    return x != x ? x : y;
  }
  template <class T>
  BCU_FN T df(T dy, T x, T low, T high) {
    return x >= low && x <= high ? dy : T(0);
  }
};

// The same where bounds have gradients too: each gets dy where x is held at it.
struct ClampTensors {
  template <class T>
  BCU_FN T f(T x, T low, T high) {
    return Clamp::f(x, low, high);
  }
  template <class T>
  BCU_FN Values<T, 3> df(T dy, T x, T low, T high) {
    return {Clamp::df(dy, x, low, high), (x < low) & (low < high) ? dy : T(0), (x > high) | (high < low) ? dy : T(0)};
  }
};

struct Addcmul {  // a + value b c
  template <class T>
  BCU_FN T f(T a, T b, T c, T value) {
    return a + value * b * c;
  }
  BCU_FN int64_t f(int64_t a, int64_t b, int64_t c, int64_t value) {
    return int64_t(f(uint64_t(a), uint64_t(b), uint64_t(c), uint64_t(value)));
  }
  template <class T>
  BCU_FN Values<T, 3> df(T dy, T, T b, T c, T value) {
    return {dy, dy * (value * c), dy * (value * b)};
  }
};

struct Addcdiv {  // a + value b / c
  template <class T>
  BCU_FN T f(T a, T b, T c, T value) {
    return a + value * b / c;
  }
  template <class T>
  BCU_FN Values<T, 3> df(T dy, T, T b, T c, T value) {
    return {dy, dy * (value / c), -dy * (value * b / c / c)};
  }
};

struct Lerp {  // a + c (b - a), from the end that is nearer
  template <class T>
  BCU_FN T f(T a, T b, T c) {
    return math::fabs(c) < T(0.5) ? a + c * (b - a) : b - (b - a) * (T(1) - c);
  }
  template <class T>
  BCU_FN Values<T, 3> df(T dy, T a, T b, T c) {
    return {dy * (T(1) - c), dy * c, dy * (b - a)};
  }
};

}  // namespace baracuda::ternary
