// Gated activations on GPUs: functors for the elementwise driver.
#pragma once
#include "ops/gated/math.h"
#include "simt/map.h"

namespace baracuda::gated {

template <class Gate>
struct ForwardMap {  // (value, gate) -> y
  enum : int { kIn = 2, kOut = 1 };
  template <class C, class X>
  BCU_DEVICE void apply(BCU_THREAD const C* in, BCU_THREAD C* out, BCU_CONSTANT X&, int64_t) {
    out[0] = in[0] * Gate::g(in[1]);
  }
};

template <class Gate>
struct BackwardMap {  // (dy, value, gate) -> (dvalue, dgate)
  enum : int { kIn = 3, kOut = 2 };
  template <class C, class X>
  BCU_DEVICE void apply(BCU_THREAD const C* in, BCU_THREAD C* out, BCU_CONSTANT X&, int64_t) {
    Slope<C> gate = Gate::slope(in[2]);
    out[0] = in[0] * gate.value;
    out[1] = in[0] * in[1] * gate.slope;
  }
};

}  // namespace baracuda::gated
