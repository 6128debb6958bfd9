// Gates of the gated activations: y = value * g(gate). Each gate with its derivative under it.
#pragma once
#include "baracuda/math/math.h"
#include "baracuda/portable.h"

namespace baracuda::gated {

struct Glu {  // sigmoid(b)
  template <class T>
  BCU_FN T g(T b) {
    return math::sigmoid(b);
  }
  template <class T>
  BCU_FN T dg(T b) {
    return math::sigmoid(b) * math::sigmoid(-b);
  }
};

struct ReGlu {  // max(b, 0), NaN kept
  template <class T>
  BCU_FN T g(T b) {
    return b <= T(0) ? T(0) : b;
  }
  template <class T>
  BCU_FN T dg(T b) {
    return b <= T(0) ? T(0) : T(1);
  }
};

struct SwiGlu {  // b * sigmoid(b), as (b * e) * e / (1 + e * e) with e = exp(b / 2) so that the tail underflows once
  template <class T>
  BCU_FN T g(T b) {
    T e = math::exp(T(-0.5) * (b < T(0) ? -b : b));
    T q = T(1) / (T(1) + e * e);
    return b < T(0) ? (b * e) * e * q : b * q;
  }
  template <class T>
  BCU_FN T dg(T b) {
    return math::sigmoid(b) + g(b) * math::sigmoid(-b);
  }
};

struct GeGlu {  // b * Phi(b), Phi by erfc so that the tail does not cancel
  template <class T>
  BCU_FN T phi_cdf(T b) {
    return T(0.5) * math::erfc(b * T(-0.70710678118654752440));
  }
  template <class T>
  BCU_FN T g(T b) {
    return b * phi_cdf(b);
  }
  template <class T>
  BCU_FN T dg(T b) {
    return phi_cdf(b) + b * T(0.39894228040143267794) * math::exp(T(-0.5) * b * b);
  }
};

}  // namespace baracuda::gated
