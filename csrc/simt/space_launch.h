// Builds index spaces from the dimensions of tensors.
#pragma once
#include <array>

#include "simt/map_launch.h"
#include "simt/space.h"

namespace baracuda::simt {

// The dimensions of a space from `first` on, merged where all tensors allow.
template <size_t kTensors>
Space<int(kTensors)> merged_space(const IterationSpace& space, const std::array<Operand, kTensors>& tensors,
                                  int64_t units, int first) {
  Merged<int(kTensors)> merged;
  merged.fill(space.rank, space.shape, [](int i) { return i; }, [&](int k, int d) { return tensors[k].strides[d]; });
  Space<int(kTensors)> s{};
  s.rank = merged.rank + first;
  s.count = merged.count() * units;
  s.narrow = s.count < (int64_t{1} << 31);
  s.shape[0] = units;
  for (int d = 0; d < merged.rank; ++d) {
    s.shape[d + first] = merged.shape[d];
    for (size_t k = 0; k < kTensors; ++k) s.stride[k][d + first] = merged.stride[k][d];
  }
  for (int d = 0; d < s.rank && s.narrow && s.count > 0; ++d) s.divider[d] = divider(s.shape[d]);
  return s;
}
// A work item for each index.
template <size_t kTensors>
Space<int(kTensors)> space_over(const IterationSpace& space, const std::array<Operand, kTensors>& tensors) {
  return merged_space(space, tensors, 1, 0);
}
// `units` work items for each index of `rows`. Dimension 0 counts the units, which move no tensor.
template <size_t kTensors>
Space<int(kTensors)> space_of_rows(const IterationSpace& rows, const std::array<Operand, kTensors>& tensors,
                                   int64_t units) {
  return merged_space(rows, tensors, units, 1);
}

// The dimensions of `t` but the last one.
inline IterationSpace leading(const TensorView& t) {
  IterationSpace s = space_of(t);
  --s.rank;
  return s;
}
inline Operand leading_operand(const TensorView& t) {
  Operand o{t.data, t.element, {}};
  for (int i = 0; i + 1 < t.rank; ++i) o.strides[i] = t.shape[i] == 1 ? 0 : t.strides[i];
  return o;
}
// How far a coordinate of the last dimension moves.
inline int64_t last_stride(const TensorView& t) { return t.shape[t.rank - 1] > 1 ? t.strides[t.rank - 1] : 1; }

// Row-major numbers of the elements of a space, as if it were a contiguous tensor.
inline Operand counting(const IterationSpace& space) {
  Operand o;
  int64_t stride = 1;
  for (int d = space.rank - 1; d >= 0; --d) {
    o.strides[d] = space.shape[d] == 1 ? 0 : stride;
    stride *= space.shape[d];
  }
  return o;
}

// Whether rows can be read in packs: address and all strides fit, and columns follow one another.
inline bool packs(const Operand& rows, int rank, int64_t column_stride, int64_t element_size) {
  if (column_stride != 1 || reinterpret_cast<uintptr_t>(rows.data) % kPackBytes != 0) return false;
  for (int d = 0; d < rank; ++d)
    if (rows.strides[d] * element_size % kPackBytes != 0) return false;
  return true;
}

}  // namespace baracuda::simt
