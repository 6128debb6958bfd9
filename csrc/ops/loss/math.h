// The elementwise losses: each with its derivative with respect to the input under it. Portable.
//
// A loss takes an input and a target, then kWeights weights (1 where the call has none), then kNumbers numbers of the
// call. df is the derivative; what dloss and a mean make of it, Slope adds.
#pragma once
#include "baracuda/math/exp.h"
#include "baracuda/math/hyperbolic.h"
#include "baracuda/math/log.h"
#include "core/values.h"

namespace baracuda::loss {

template <class C>
BCU_FN C sign_of(C x) {
  return x > C(0) ? C(1) : x < C(0) ? C(-1) : x;  // NaN stays
}

// a * b + c as one operation where there is one.
template <class C>
BCU_FN C multiply_add(C a, C b, C c) {
#if BCU_HAS_FMA
  return math::fma(a, b, c);
#else
  return a * b + c;
#endif
}

struct Mse {
  enum : int { kWeights = 0, kNumbers = 0, kUnit = 0 };
  template <class C>
  BCU_FN C f(C x, C t) {
    C d = x - t;
    return d * d;
  }
  template <class C>
  BCU_FN C df(C x, C t) {
    return C(2) * (x - t);
  }
};

struct L1 {
  enum : int { kWeights = 0, kNumbers = 0, kUnit = 0 };
  template <class C>
  BCU_FN C f(C x, C t) {
    return math::fabs(x - t);
  }
  // 0 for NaN too, as in torch.
  template <class C>
  BCU_FN C df(C x, C t) {
    C d = x - t;
    return d > C(0) ? C(1) : d < C(0) ? C(-1) : C(0);
  }
};

// beta = 0 is L1.
struct SmoothL1 {
  enum : int { kWeights = 0, kNumbers = 1, kUnit = 0 };
  template <class C>
  BCU_FN C f(C x, C t, C beta) {
    C z = math::fabs(x - t), half_beta = beta / C(2);
    return z < beta ? z * z / beta / C(2) : z - half_beta;
  }
  template <class C>
  BCU_FN C df(C x, C t, C beta) {
    C d = x - t;
    return math::fabs(d) < beta ? d / beta : sign_of(d);
  }
};

struct Huber {
  enum : int { kWeights = 0, kNumbers = 1, kUnit = 0 };
  template <class C>
  BCU_FN C f(C x, C t, C delta) {
    C z = math::fabs(x - t), half_delta = delta / C(2);
    return z <= delta ? z * z / C(2) : delta * (z - half_delta);
  }
  template <class C>
  BCU_FN C df(C x, C t, C delta) {
    C d = x - t;
    return math::fabs(d) <= delta ? d : delta * sign_of(d);
  }
};

template <class C>
BCU_FN C at_least(C x, C least) {
  return x < least ? least : x;  // NaN stays
}

// kUnit: input and target lie in [0, 1]; what is outside gives NaN.
struct Bce {
  enum : int { kWeights = 1, kNumbers = 0, kUnit = 1 };
  template <class C>
  BCU_FN C f(C x, C t, C weight) {
    C yes = at_least(math::log(x), C(-100)), no = at_least(math::log1p(-x), C(-100));
    t = t >= C(0) && t <= C(1) ? t : math::quiet_nan<C>();
    return weight * ((t - C(1)) * no - t * yes);
  }
  template <class C>
  BCU_FN C df(C x, C t, C weight) {
    C spread = at_least((C(1) - x) * x, C(1) / C(1000000) / C(1000000));
    return weight * ((x - t) / spread);
  }
};

struct BceWithLogits {
  enum : int { kWeights = 2, kNumbers = 0, kUnit = 0 };
  template <class C>
  BCU_FN C f(C x, C t, C weight, C positive) {
    C below = x < C(0) ? -x : x != x ? x : C(0), one = C(1);
    C tail = math::log1p(math::exp(-math::fabs(x))) + below;
    return weight * ((one - t) * x + ((positive - one) * t + one) * tail);
  }
  template <class C>
  BCU_FN C df(C x, C t, C weight, C positive) {
    // Spelled out, so that no compiler chooses which of the products it keeps whole, here so and there otherwise.
    return weight * multiply_add(multiply_add(positive, t, C(1) - t), math::sigmoid(x), -(positive * t));
  }
};

struct KlDivOfLogs {
  enum : int { kWeights = 0, kNumbers = 0, kUnit = 0 };
  template <class C>
  BCU_FN C f(C x, C t) {
    return math::exp(t) * (t - x);
  }
  template <class C>
  BCU_FN C df(C, C t) {
    return -math::exp(t);
  }
};
// OfLogs: the loss where the target is given as its logarithm.
struct KlDiv {
  using OfLogs = KlDivOfLogs;
  enum : int { kWeights = 0, kNumbers = 0, kUnit = 0 };
  template <class C>
  BCU_FN C f(C x, C t) {
    C own = t == C(0) ? C(0) : t * math::log(t);
    return own - t * x;
  }
  template <class C>
  BCU_FN C df(C, C t) {
    return -t;
  }
};

// dloss times the derivative, divided by what a mean counts.
template <class F>
struct Slope {
  template <class C>
  BCU_FN C f(C dloss, C count, C x, C t) {
    return dloss / count * F::df(x, t);
  }
  template <class C>
  BCU_FN C f(C dloss, C count, C x, C t, C a) {
    return dloss / count * F::df(x, t, a);
  }
  template <class C>
  BCU_FN C f(C dloss, C count, C x, C t, C a, C b) {
    return dloss / count * F::df(x, t, a, b);
  }
};

}  // namespace baracuda::loss
