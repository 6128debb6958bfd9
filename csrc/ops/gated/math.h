// Gates of the gated activations: y = value * g(gate). Each gate with its derivative under it.
#pragma once
#include "baracuda/math/math.h"
#include "baracuda/portable.h"
#include "core/values.h"

namespace baracuda::gated {

// slope: g(b) and g'(b).
using math::Slope;

struct Glu {  // sigmoid(b)
  template <class T>
  BCU_FN T g(T b) {
    return math::fast_sigmoid(b);
  }
  template <class T>
  BCU_FN Slope<T> slope(T b) {
    return math::fast_sigmoid_slope(b);
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
    return math::silu_slope(b);
  }
};

struct GeGlu {  // b * Phi(b), whose tail does not cancel
  template <class T>
  BCU_FN T g(T b) {
    return math::gelu(b);
  }
  template <class T>
  BCU_FN Slope<T> slope(T b) {
    return math::gelu_slope(b);
  }
};

template <class Gate>
struct Product {  // y
  template <class C>
  BCU_FN Values<C, 1> f(C a, C b) {
    return {a * Gate::g(b)};
  }
};

template <class Gate>
struct Gradients {  // da, db
  template <class C>
  BCU_FN Values<C, 2> f(C dy, C a, C b) {
    Slope<C> gate = Gate::slope(b);
    // The slope of a far gate is 0, also times infinity, and dy * a may overflow.
    return {dy * gate.value, dy * (gate.slope == C(0) ? C(0) : a * gate.slope)};
  }
};

}  // namespace baracuda::gated
