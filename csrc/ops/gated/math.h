// Gates of the gated activations: y = value * g(gate). Each gate with its derivative under it.
#pragma once
#include "baracuda/math/math.h"
#include "baracuda/portable.h"

namespace baracuda::gated {

// g(b) and g'(b).
template <class T>
struct Slope {
  T value, slope;
};

struct Glu {  // sigmoid(b)
  template <class T>
  BCU_FN T g(T b) {
    return math::sigmoid(b);
  }
  template <class T>
  BCU_FN Slope<T> slope(T b) {
    T s = math::sigmoid(b);
    return {s, s * math::sigmoid(-b)};
  }
};

struct ReGlu {  // max(b, 0), NaN kept
  template <class T>
  BCU_FN T g(T b) {
    return b <= T(0) ? T(0) : b;
  }
  template <class T>
  BCU_FN Slope<T> slope(T b) {
    return {g(b), b <= T(0) ? T(0) : T(1)};
  }
};

struct SwiGlu {  // b * sigmoid(b)
  template <class T>
  BCU_FN T g(T b) {
    return math::silu(b);
  }
  template <class T>
  BCU_FN Slope<T> slope(T b) {
    auto both = math::silu_slope(b);
    return {both.value, both.slope};
  }
};

struct GeGlu {  // b * Phi(b), Phi by erfc so that the tail does not cancel
  template <class T>
  BCU_FN T cdf(T b) {
    return T(0.5) * math::erfc(b * T(-0.70710678118654752440));
  }
  template <class T>
  BCU_FN T g(T b) {
    return b * cdf(b);
  }
  template <class T>
  BCU_FN Slope<T> slope(T b) {
    T phi = cdf(b);
    return {b * phi, phi + b * T(0.39894228040143267794) * math::exp(T(-0.5) * b * b)};
  }
};

}  // namespace baracuda::gated
