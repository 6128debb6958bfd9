// The (value, gate) halves of a split tensor.
#pragma once
#include "core/tile.h"
#include "ops/gated/skus.h"

namespace baracuda::gated {

struct Halves {
  Operand value, gate;
};

// The (value, gate) halves of a split tensor, or the two tensors of a pair when `joined` is absent.
inline Halves halves(const TensorView& joined, const TensorView& value, const TensorView& gate, const GatedAttrs& attrs,
                     const IterationSpace& space) {
  if (!joined.present()) return {operand(value, space), operand(gate, space)};
  Halves out{operand(joined, space), operand(joined, space)};
  const int64_t offset = space.shape[attrs.split_dim] * joined.strides[attrs.split_dim] * size_of(joined.element);
  Operand& second = attrs.gate_first ? out.value : out.gate;
  second.data = joined.as<char>() + offset;
  return out;
}

}  // namespace baracuda::gated
