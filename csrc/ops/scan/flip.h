// A tensor seen backwards along an axis.
#pragma once
#include "core/launch.h"

namespace baracuda::scan {

inline TensorView flipped(const TensorView& t, int64_t axis) {
  TensorView f = t;
  if (t.rank == 0 || t.shape[axis] == 0) return f;
  f.data = t.as<char>() + (t.shape[axis] - 1) * t.strides[axis] * size_of(t.element);
  f.strides[axis] = -t.strides[axis];
  return f;
}

}  // namespace baracuda::scan
