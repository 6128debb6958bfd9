// Where the elements of an indexed op lie: the space that is walked, the tensor that has its shape, the one that is
// entered at an index, and the indices.
#pragma once
#include <algorithm>

#include "host/in_range.h"
#include "host/rows.h"
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
  bool even = true;  // whether one step serves all indices

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
    step = indexed.strides[a];
    if (!is_flat) return;
    for (int d = 0; d < indexed.rank; ++d) flat.push(indexed.shape[d], indexed.strides[d]);
    even = flat.rank <= 1;
    step = !even ? 0 : flat.rank == 1 ? flat.strides[0] : 1;
  }

  IndexReader reader() const { return {index_element, indices, wrap ? limit : 0}; }

  // What n indices from `offset` on move the indexed tensor by, in elements. They have been checked.
  void read(int64_t offset, int64_t stride, int64_t n, int64_t* to) const {
    load<int64_t>(index_element, indices + offset * size_of(index_element), stride, to, n);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t id = to[i] + (wrap && to[i] < 0 ? limit : 0);
      to[i] = even ? id * step : flat.offset(id);
    }
  }
};

// A walk over steps and, innermost, over the pieces of a run of `length`: from one piece to the next without a
// division.
class Pieces {
 public:
  Pieces(const Steps3& outer, int64_t length, int64_t piece, int64_t position)
      : outer_(outer), length_(length), piece_(piece) {
    const int64_t pieces = (length + piece - 1) / piece;
    begin_ = position % pieces * piece, position /= pieces;
    for (int d = outer.rank - 1; d >= 0; --d) {
      index_[d] = position % outer.steps[d].size, position /= outer.steps[d].size;
      move(outer.steps[d], index_[d]);
    }
  }
  void next() {
    if ((begin_ += piece_) < length_) return;
    begin_ = 0;
    for (int d = outer_.rank - 1; d >= 0; --d) {
      const Step& s = outer_.steps[d];
      move(s, 1);
      if (++index_[d] < s.size) return;
      move(s, -s.size);
      index_[d] = 0;
    }
  }
  int64_t size() const { return std::min(piece_, length_ - begin_); }
  // Where the piece begins in each tensor, its run being along `step`.
  void begin_of(const Step& step, int64_t* at) const {
    for (int k = 0; k < kTensors; ++k) at[k] = offsets_[k] + begin_ * step.stride[k];
  }

 private:
  void move(const Step& s, int64_t by) {
    for (int k = 0; k < kTensors; ++k) offsets_[k] += by * s.stride[k];
  }
  const Steps3& outer_;
  int64_t length_, piece_, begin_;
  int64_t index_[kMaxRank], offsets_[kTensors] = {};
};

// Calls run(pieces, n) for the threads' shares: n pieces from where `pieces` is. A run has `length` positions of `work`
// elements each; long ones are cut into pieces of `piece`, so that one can occupy several threads.
template <class Run>
void in_pieces(const Steps3& outer, int64_t length, int64_t piece, int64_t work, Run&& run) {
  piece = std::min(length, piece);
  const int64_t total = outer.count() * ((length + piece - 1) / piece);
  parallel_for(total, row_grain(piece * work), [&](int64_t begin, int64_t end) {
    Pieces pieces(outer, length, piece, begin);
    run(pieces, end - begin);
  });
}

}  // namespace baracuda::indexing
