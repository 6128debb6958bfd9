// The (value, gate) halves of a split tensor.
#pragma once
#include "core/tile.h"
#include "ops/gated/skus.h"

namespace baracuda::gated {

enum class Half { Value, Gate };

// One half of the split tensor that parameter `joined` is; where the plan has none, the tensor of its own that follows.
// Made where it is needed: copying an operand just written stalls, which small launches feel.
inline Operand half(Half which, const Launch& launch, int joined, const GatedAttrs& attrs,
                    const IterationSpace& space) {
  const TensorView& whole = launch[joined];
  const bool split = whole.present(), gate = which == Half::Gate;
  Operand o = operand(split ? whole : launch[joined + (gate ? 2 : 1)], space);
  if (split && gate != bool(attrs.gate_first))
    o.data = whole.as<char>() + space.shape[attrs.split_dim] * whole.strides[attrs.split_dim] * size_of(whole.element);
  return o;
}

}  // namespace baracuda::gated
