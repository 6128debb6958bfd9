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

}  // namespace baracuda::ternary
