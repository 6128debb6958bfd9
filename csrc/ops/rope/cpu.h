// What the kernels of rotary position embeddings on the CPU share.
#pragma once
#include <algorithm>
#include <cstdlib>

#include "backends/cpu/family.h"
#include "core/compute.h"
#include "core/parallel.h"
#include "host/convert.h"
#include "ops/rope/skus.h"

namespace baracuda::rope {

inline constexpr int64_t kGrain = 1 << 15;  // elements per parallel chunk

// Rows of a table in the compute type.
template <class C>
struct TableView {
  const char* data;
  Element element;
  int64_t row, column;
  LoadFn<C> load_row;
  explicit TableView(const TensorView& t)
      : data(t.as<char>()),
        element(t.element),
        row(t.strides[0] * size_of(t.element)),
        column(t.shape[1] > 1 ? t.strides[1] : 1),
        load_row(loader<C>(t.element)) {}
  // Columns [first, first + n) of a row: where they lie if that will do, else copied.
  const C* read(int64_t at, int64_t first, int64_t n, C* copy) const {
    const char* from = data + at * row + first * column * size_of(element);
    if (element == element_of<C> && column == 1) return reinterpret_cast<const C*>(from);
    load_row(from, column, copy, n);
    return copy;
  }
};

// y may be x: a pair is read before it is written.
template <class C>
void rotate_halves(const C* x1, const C* x2, const C* c, const C* s, C sign, C* y1, C* y2, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const C a = x1[i], b = x2[i], w = sign * s[i];
    y1[i] = a * c[i] - b * w;
    y2[i] = b * c[i] + a * w;
  }
}
template <class C>
void rotate_pairs(const C* x, const C* c, const C* s, C sign, C* y, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const C a = x[2 * i], b = x[2 * i + 1], w = sign * s[i];
    y[2 * i] = a * c[i] - b * w;
    y[2 * i + 1] = b * c[i] + a * w;
  }
}

// Which positions the rows of a sequence have.
struct Positions {
  const TensorView& given;
  int64_t start;

  Positions(const TensorView& t, const Scalar& position) : given(t), start(t.present() ? 0 : position.as_i64()) {}
  int64_t of(int64_t b, int64_t s) const {
    if (!given.present()) return start + s;
    const int64_t *shape = given.shape, *strides = given.strides;
    const int64_t at = given.rank == 2 ? (shape[0] == 1 ? 0 : b * strides[0]) + s * strides[1] : s * strides[0];
    return given.element == Element::I32 ? int64_t{given.as<const int32_t>()[at]} : given.as<const int64_t>()[at];
  }

  // Every position is looked up before the first write. `tables`: where cos, and `place`, where positions stand.
  Status check(const TensorView& x, int64_t table_rows, int tables, int place, Failure* failure) const {
    const int64_t batch = x.rank > 2 ? x.shape[0] : 1, seq = x.shape[x.rank - 2];
    const bool present = given.present();
    const int64_t rows = present && given.rank == 2 ? std::min(batch, given.shape[0]) : std::min<int64_t>(batch, 1);
    for (int64_t b = 0; b < rows; ++b) {
      for (int64_t s = 0; s < seq; ++s) {
        const int64_t at = of(b, s);
        if (at >= 0 && at < table_rows) continue;
        *failure = {present ? place : tables, b * seq + s, at, table_rows};
        return Status::IndexOutOfRange;
      }
    }
    return Status::Ok;
  }
};

inline int64_t column_stride(const TensorView& t) {
  const int64_t last = t.rank - 1;
  return t.shape[last] > 1 ? t.strides[last] : 1;
}

// Goes through the rows of several tensors in the order of the first one's memory.
template <int kTensors>
struct RowWalk {
  const TensorView* tensors[kTensors];  // those that the call does not have stay where they are
  int axes[kMaxRank];                   // outermost first
  int64_t index[kMaxRank] = {};
  int64_t at[kTensors] = {};

  template <class... T>
  explicit RowWalk(int64_t row, const T&... t) : tensors{&t...} {
    const TensorView& x = *tensors[0];
    // Insertion sort: stable, and without the memory that std::stable_sort takes.
    for (int i = 0; i < x.rank - 1; ++i) {
      int to = i;
      for (; to > 0 && std::abs(x.strides[axes[to - 1]]) < std::abs(x.strides[i]); --to) axes[to] = axes[to - 1];
      axes[to] = i;
    }
    for (int i = x.rank - 2; i >= 0; --i) {
      const int axis = axes[i];
      index[axis] = row % x.shape[axis];
      row /= x.shape[axis];
      move(axis, index[axis]);
    }
  }
  void advance() {
    const TensorView& x = *tensors[0];
    for (int i = x.rank - 2; i >= 0; --i) {
      const int axis = axes[i];
      move(axis, 1);
      if (++index[axis] < x.shape[axis]) return;
      move(axis, -index[axis]);
      index[axis] = 0;
    }
  }
  int64_t batch() const { return tensors[0]->rank > 2 ? index[0] : 0; }
  int64_t place() const { return index[tensors[0]->rank - 2]; }  // in the sequence
  template <class B = char>
  B* row(int k) const {
    return reinterpret_cast<B*>(tensors[k]->template as<char>() + at[k] * size_of(tensors[k]->element));
  }

 private:
  void move(int axis, int64_t steps) {
    for (int k = 0; k < kTensors; ++k) {
      if (tensors[k]->present()) at[k] += steps * tensors[k]->strides[axis];
    }
  }
};

}  // namespace baracuda::rope
