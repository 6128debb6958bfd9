// Where the elements of an indexed op lie: the space that is walked, the tensor that has its shape, the one that is
// entered at an index, and the indices.
#pragma once
#include <algorithm>

#include "backends/cpu/in_range.h"
#include "backends/cpu/rows.h"
#include "ops/indexing/skus.h"

namespace baracuda::indexing {

enum Tensor : int { kPlain, kIndexed, kIndices, kTensors };

// One step of a walk, with what it moves each tensor by, in elements.
struct Step {
  int64_t size = 1;
  int64_t stride[kTensors] = {};
};

struct Steps3 {
  int rank = 0;
  Step steps[kMaxRank];

  void push(const Step& s) {
    if (s.size == 1) return;
    if (rank > 0) {
      Step& last = steps[rank - 1];
      bool joins = true;
      for (int k = 0; k < kTensors; ++k) joins &= last.stride[k] == s.stride[k] * s.size;
      if (joins) {
        const int64_t size = last.size * s.size;
        last = s;
        last.size = size;
        return;
      }
    }
    steps[rank++] = s;
  }
  int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= steps[d].size;
    return n;
  }
  // Adds the offsets of position `at` to those given.
  void offset(int64_t at, int64_t* offsets) const {
    for (int d = rank - 1; d >= 0; --d) {
      const int64_t next = at / steps[d].size, c = at - next * steps[d].size;
      for (int k = 0; k < kTensors; ++k) offsets[k] += c * steps[d].stride[k];
      at = next;
    }
  }
};

// A tensor of rank 0 as a vector of one element.
inline TensorView as_vector(TensorView t) {
  if (t.rank == 0) t.rank = 1, t.shape[0] = 1, t.strides[0] = 1;
  return t;
}

struct Places {
  Steps3 outer, inner;  // before and after the axis
  Step axis;
  Element index_element;
  const char* indices;
  int64_t limit, step;  // of indices; elements of the indexed tensor that one moves by
  Steps flat;           // By::Flat: the indexed tensor's dimensions
  bool is_flat, wrap;

  Places(By by, int64_t at, bool wraps, const TensorView& plain_, const TensorView& indexed_, const TensorView& index_)
      : index_element(index_.element), indices(index_.as<char>()), is_flat(by == By::Flat), wrap(wraps) {
    const TensorView plain = as_vector(plain_), indexed = as_vector(indexed_), index = as_vector(index_);
    const int a = is_flat ? plain.rank - 1 : static_cast<int>(at);
    const TensorView& space = by == By::Axis ? plain : index;
    for (int d = 0; d < space.rank; ++d) {
      Step s;
      s.size = space.shape[d];
      s.stride[kPlain] = plain.strides[d];
      s.stride[kIndexed] = is_flat || d == a ? 0 : indexed.strides[d];
      s.stride[kIndices] = by != By::Axis ? index.strides[d] : d == a ? index.strides[0] : 0;
      if (d == a)
        axis = s;
      else
        (d < a ? outer : inner).push(s);
    }
    limit = is_flat ? indexed.numel() : indexed.shape[a];
    step = is_flat ? 1 : indexed.strides[a];
    for (int d = 0; is_flat && d < indexed.rank; ++d) flat.push(indexed.shape[d], indexed.strides[d]);
  }

  // What n indices from `offset` on move the indexed tensor by, in elements. They have been checked.
  void read(int64_t offset, int64_t stride, int64_t n, int64_t* to) const {
    load<int64_t>(index_element, indices + offset * size_of(index_element), stride, to, n);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t id = to[i] + (wrap && to[i] < 0 ? limit : 0);
      to[i] = is_flat ? flat.offset(id) : id * step;
    }
  }
};

}  // namespace baracuda::indexing
