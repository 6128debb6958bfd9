// The (value, gate) halves of a split tensor.
#pragma once
#include "host/tile.h"
#include "ops/gated/skus.h"

namespace baracuda::gated {

enum class Half { Value, Gate };

// One half of the split tensor `whole`; where the plan has none, that half's own tensor.
// Made where it is needed: copying an operand just written stalls, which small launches feel.
inline Operand half(Half which, const TensorView& whole, const TensorView& own, const GatedAttrs& attrs,
                    const IterationSpace& space) {
  const bool split = whole.present(), gate = which == Half::Gate;
  Operand o = operand(split ? whole : own, space);
  if (split && gate != bool(attrs.gate_first))
    o.data = whole.as<char>() + space.shape[attrs.split_dim] * whole.strides[attrs.split_dim] * size_of(whole.element);
  return o;
}

}  // namespace baracuda::gated
