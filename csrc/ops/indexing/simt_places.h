// Where the elements of an indexed op lie, for launchers.
#pragma once
#include "ops/indexing/skus.h"
#include "simt/index_launch.h"

namespace baracuda::indexing {

// A tensor of rank 0 as a vector of one element.
inline TensorView as_vector(TensorView t) {
  if (t.rank == 0) t.rank = 1, t.shape[0] = 1, t.strides[0] = 1;
  return t;
}
inline Operand strides_of(const TensorView& t) { return operand(t, space_of(t)); }

// The space of what is read or written, and the strides of the tensors in it; the indexed tensor's are 0 along the
// axis.
struct Places {
  IterationSpace space;
  Operand plain, indexed, index, position;
  int axis;
  int64_t limit, step;  // of indices; elements of the indexed tensor that one moves by

  Places(By by, int64_t at, const TensorView& plain_, const TensorView& indexed_, const TensorView& index_)
      : axis(static_cast<int>(at)) {
    const TensorView given = as_vector(plain_), target = as_vector(indexed_), indices = as_vector(index_);
    space = space_of(by == By::Axis ? given : indices);
    plain = strides_of(given);
    limit = by == By::Flat ? target.numel() : target.shape[axis];
    step = by == By::Flat ? 1 : target.strides[axis];
    indexed.data = target.data, indexed.element = target.element, index.data = indices.data;
    for (int d = 0; d < space.rank; ++d) {
      indexed.strides[d] = by == By::Flat || d == axis ? 0 : target.strides[d];
      index.strides[d] = by != By::Axis ? indices.strides[d] : d == axis ? indices.strides[0] : 0;
    }
    position = simt::counting(space);
    for (int d = 0; d < space.rank && by == By::Axis; ++d) position.strides[d] = d == axis ? 1 : 0;
  }
};

}  // namespace baracuda::indexing
