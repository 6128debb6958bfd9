// What reductions do to single elements: derivatives, and the terms that norms add. Portable.
#pragma once
#include "baracuda/math/exp.h"
#include "baracuda/math/pow.h"
#include "core/values.h"

namespace baracuda::reduce {

template <class C>
BCU_FN C sign_of(C x) {
  return x > C(0) ? C(1) : x < C(0) ? C(-1) : x;
}

struct Spread {  // dy, broadcast, and what it is divided by
  template <class C>
  BCU_FN C f(C dy, C divisor) {
    return dy / divisor;
  }
};
struct SpreadNumbers {  // the same where x is a number
  template <class C>
  BCU_FN C f(C dy, C x, C divisor) {
    return x == x ? dy / divisor : C(0);
  }
};
// `others` is the product of the values that are not zero.
struct ProductGradient {
  template <class C>
  BCU_FN C f(C dy, C x, C others, C zeros) {
    C rest = x == C(0) ? others : others / x;
    return dy * (zeros > (x == C(0) ? C(1) : C(0)) ? C(0) : rest);
  }
};
// e^(x - y) where y is finite.
struct LogSumExpGradient {
  template <class C>
  BCU_FN C f(C dy, C x, C y) {
    return dy * math::exp(x - y);
  }
};
struct NormGradient1 {
  template <class C>
  BCU_FN C f(C dy, C x) {
    return dy * sign_of(x);
  }
};
struct NormGradient2 {
  template <class C>
  BCU_FN C f(C dy, C x, C y) {
    return y == C(0) ? C(0) : dy * (x / y);
  }
};
struct NormGradient {
  template <class C>
  BCU_FN C f(C dy, C x, C y, C p) {
    C share = math::pow(math::fabs(x) / y, p - C(1));
    return x == C(0) || p == C(0) ? C(0) : dy * (sign_of(x) * share);
  }
};
// scale: 2 / (count - correction) for a variance, half of that for a standard deviation. The mean is mean + rest.
struct VarianceGradient {
  template <class C>
  BCU_FN C f(C dy, C x, C mean, C rest, C scale) {
    return dy * (scale * ((x - mean) - rest));
  }
  template <class C>
  BCU_FN C f(C dy, C dmean, C x, C mean, C rest, C scale, C count) {
    return f(dy, x, mean, rest, scale) + dmean / count;
  }
};
struct DeviationGradient {
  template <class C>
  BCU_FN C f(C dy, C x, C mean, C rest, C y, C scale) {
    // What is divided by y is no larger than sqrt(count) y.
    return y == C(0) ? C(0) : dy * (scale * (((x - mean) - rest) / y));
  }
  template <class C>
  BCU_FN C f(C dy, C dmean, C x, C mean, C rest, C y, C scale, C count) {
    return f(dy, x, mean, rest, y, scale) + dmean / count;
  }
};

struct CosineGradient {
  template <class C>
  BCU_FN C f(C dy, C x, C other, C cross, C own) {
    return dy * (cross * other - own * x);
  }
};

}  // namespace baracuda::reduce
