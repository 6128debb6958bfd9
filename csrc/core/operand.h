// Tensors as loops walk them, on the CPU as on GPUs: in the order of an iteration space, broadcast to it.
#pragma once
#include <cstdint>

#include "core/launch.h"

namespace baracuda {

// One tensor as the loop sees it: strides per dimension of the iteration space, 0 where it is broadcast.
struct Operand {
  void* data = nullptr;
  Element element = Element::F32;
  int64_t strides[kMaxRank] = {};
};

struct IterationSpace {
  int32_t rank = 0;
  int64_t shape[kMaxRank] = {};

  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[i];
    return n;
  }
};

inline IterationSpace space_of(const TensorView& t) {
  IterationSpace s;
  s.rank = t.rank;
  for (int i = 0; i < t.rank; ++i) s.shape[i] = t.shape[i];
  return s;
}

// `t` broadcast to the space, aligned at the last dimension as NumPy does. Shapes have been checked before.
inline Operand operand(const TensorView& t, const IterationSpace& space) {
  Operand o{t.data, t.element, {}};
  for (int i = 0; i < t.rank; ++i) {
    int d = space.rank - t.rank + i;
    o.strides[d] = t.shape[i] == 1 ? 0 : t.strides[i];
  }
  return o;
}
// An optional output: one that the plan does not have is written nowhere.
inline Operand output_operand(const TensorView& t, const IterationSpace& space) {
  return t.present() ? operand(t, space) : Operand{};
}
// A compute-type constant as an operand that every element reads.
inline Operand constant(const void* value, Element element) { return {const_cast<void*>(value), element, {}}; }

}  // namespace baracuda
