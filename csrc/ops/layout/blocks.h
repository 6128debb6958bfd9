// Data movement as a few copies and fills of parts of tensors. A Mover carries them out:
//   Status copy(const TensorView& to, const TensorView& from)    views of one shape
//   Status clear(const TensorView& to)                           zeros, or what the mover fills with
// The same functions serve the CPU, whose movers are copies by tiles, and GPUs, where each part is a launch.
#pragma once
#include <algorithm>
#include <cstddef>

#include "core/collapse.h"
#include "core/launch.h"
#include "ops/layout/axis.h"
#include "ops/layout/skus.h"

namespace baracuda::layout {

inline TensorView slice(TensorView t, int axis, int64_t begin, int64_t size, int64_t step = 1) {
  if (size > 0) t.data = t.as<char>() + begin * t.strides[axis] * size_of(t.element);
  t.shape[axis] = size, t.strides[axis] *= step;
  return t;
}
inline TensorView select(TensorView t, int axis, int64_t index) {
  t = slice(t, axis, index, 1);
  --t.rank;
  for (int d = axis; d < t.rank; ++d) t.shape[d] = t.shape[d + 1], t.strides[d] = t.strides[d + 1];
  return t;
}

template <class Mover>
Status cat(const Launch& launch, const Mover& mover) {
  const int axis = static_cast<int>(attributes<ListAttrs>(launch).axis);
  const TensorView &y = launch[ListArgs::y], *list = &launch[ListArgs::tensors];
  int64_t at = 0;
  for (int k = 0; k < launch.count(ListArgs::tensors); ++k) {
    const TensorView& x = list[k];
    if (const Status s = mover.copy(slice(y, axis, at, x.shape[axis]), x); s != Status::Ok) return s;
    at += x.shape[axis];
  }
  return Status::Ok;
}

template <class Mover>
Status stack(const Launch& launch, const Mover& mover) {
  const int axis = static_cast<int>(attributes<ListAttrs>(launch).axis);
  const TensorView &y = launch[ListArgs::y], *list = &launch[ListArgs::tensors];
  for (int k = 0; k < launch.count(ListArgs::tensors); ++k)
    if (const Status s = mover.copy(select(y, axis, k), list[k]); s != Status::Ok) return s;
  return Status::Ok;
}

template <class Mover>
Status flip(const Launch& launch, const Mover& mover) {
  const int64_t axes = attributes<FlipAttrs>(launch).axes;
  TensorView x = launch[MoveArgs::x];
  for (int d = 0; d < x.rank; ++d)
    if (axes >> d & 1) x = slice(x, d, std::max<int64_t>(x.shape[d], 1) - 1, x.shape[d], -1);
  return mover.copy(launch[MoveArgs::y], x);
}

// Elements added before an axis, and how far it is rolled.
inline int64_t low_of(const Launch& launch, int axis) { return launch.attrs[offsetof(PadAttrs, low0) / 8 + axis]; }
inline int64_t shift_of(const Launch& launch, int axis) { return launch.attrs[offsetof(RollAttrs, shift0) / 8 + axis]; }

// A run of one axis of a padded tensor, and where in the other its elements come from.
struct Run {
  int64_t to, count, from, step;
  bool clear;
};

// The runs that make up an axis; how many.
inline int runs_of(const Axis& a, int64_t mode, Run (&runs)[3]) {
  const int64_t n = a.size, high = a.padded - a.low - n;
  const bool clear = mode == kConstant;
  int count = 0;
  auto add = [&](int64_t to, int64_t size, int64_t from, int64_t step, bool cleared) {
    if (size > 0) runs[count++] = {to, size, from, step, cleared};
  };
  const int64_t before = mode == kReflect ? a.low : mode == kCircular ? n - a.low : 0;
  const int64_t behind = mode == kReflect ? n - 2 : mode == kCircular ? 0 : n - 1;
  const int64_t step = mode == kReflect ? -1 : mode == kCircular ? 1 : 0;
  add(0, a.low, before, step, clear);
  add(a.low, n, 0, 1, false);
  add(a.low + n, high, behind, step, clear);
  return count;
}

template <class Mover>
Status pad(const Mover& mover, const Axis* axes, int64_t mode, int axis, const TensorView& to, const TensorView& from) {
  if (axis == to.rank) return mover.copy(to, from);
  Run runs[3];
  const int count = runs_of(axes[axis], mode, runs);
  for (int i = 0; i < count; ++i) {
    const Run& r = runs[i];
    const TensorView part = slice(to, axis, r.to, r.count);
    const Status s = r.clear ? mover.clear(part)
                             : pad(mover, axes, mode, axis + 1, part, slice(from, axis, r.from, r.count, r.step));
    if (s != Status::Ok) return s;
  }
  return Status::Ok;
}

template <class Mover>
Status pad(const Launch& launch, const Mover& mover) {
  const TensorView& y = launch[PadArgs::y];
  Axis axes[kMaxRank];
  TensorView x = launch[PadArgs::x];
  const int64_t mode = attributes<PadAttrs>(launch).mode;
  for (int d = 0; d < x.rank; ++d) {
    axes[d] = padded_axis(x.shape[d], y.shape[d], low_of(launch, d));
    x = slice(x, d, axes[d].skipped, axes[d].size);
  }
  return y.numel() ? pad(mover, axes, mode, 0, y, x) : Status::Ok;
}

// Every axis in two parts that change places.
template <class Mover>
Status rolled(const Launch& launch, const Mover& mover, int axis, const TensorView& to, const TensorView& from) {
  if (axis == to.rank) return mover.copy(to, from);
  const int64_t n = to.shape[axis], shift = ((shift_of(launch, axis) % n) + n) % n;
  for (int part = 0; part < 2; ++part) {
    const int64_t begin = part ? shift : 0, size = part ? n - shift : shift, source = part ? 0 : n - shift;
    if (size == 0) continue;
    const Status s = rolled(launch, mover, axis + 1, slice(to, axis, begin, size), slice(from, axis, source, size));
    if (s != Status::Ok) return s;
  }
  return Status::Ok;
}

template <class Mover>
Status roll(const Launch& launch, const Mover& mover) {
  const TensorView &x = launch[MoveArgs::x], &y = launch[MoveArgs::y];
  return y.numel() ? rolled(launch, mover, 0, y, x) : Status::Ok;
}

// Copies between spaces of up to twice the rank of a tensor: neighbours are merged, and what does not fit is looped
// over.
class WideCopy {
 public:
  WideCopy(const TensorView& to, const TensorView& from) : to_(to), from_(from) {}

  void add(int64_t size, int64_t to, int64_t from) {
    collapse(
        rank_, shape_, 2, size, [this](int k, int d) -> int64_t& { return (k ? from_stride_ : to_stride_)[d]; },
        [&](int k) { return k ? from : to; });
  }

  template <class Mover>
  Status run(const Mover& mover) {
    return run(mover, 0, to_.as<char>(), from_.as<char>());
  }

 private:
  template <class Mover>
  Status run(const Mover& mover, int first, char* to, char* from) {
    if (rank_ - first > kMaxRank) {
      for (int64_t i = 0; i < shape_[first]; ++i) {
        const int64_t size = size_of(to_.element);
        const Status s =
            run(mover, first + 1, to + i * to_stride_[first] * size, from + i * from_stride_[first] * size);
        if (s != Status::Ok) return s;
      }
      return Status::Ok;
    }
    to_.data = to, from_.data = from;
    to_.rank = from_.rank = rank_ - first;
    for (int d = first; d < rank_; ++d) {
      to_.shape[d - first] = from_.shape[d - first] = shape_[d];
      to_.strides[d - first] = to_stride_[d], from_.strides[d - first] = from_stride_[d];
    }
    return mover.copy(to_, from_);
  }

  TensorView to_, from_;
  int rank_ = 0;
  int64_t shape_[2 * kMaxRank], to_stride_[2 * kMaxRank], from_stride_[2 * kMaxRank];
};

// x as it is, or with dimensions of size 1 in front, for a y of higher rank.
inline TensorView widened(TensorView x, int rank) {
  const int more = rank - x.rank;
  for (int d = rank - 1; d >= 0; --d) {
    x.shape[d] = d >= more ? x.shape[d - more] : 1;
    x.strides[d] = d >= more ? x.strides[d - more] : 0;
  }
  x.rank = rank;
  return x;
}

template <class Mover>
Status repeat(const Launch& launch, const Mover& mover) {
  const TensorView &y = launch[MoveArgs::y], x = widened(launch[MoveArgs::x], y.rank);
  const bool each = attributes<RepeatAttrs>(launch).each != 0;
  if (y.numel() == 0) return Status::Ok;
  WideCopy wide(y, x);
  for (int d = 0; d < y.rank; ++d) {
    const int64_t n = x.shape[d], times = y.shape[d] / n;
    if (!each) wide.add(times, y.strides[d] * n, 0);
    wide.add(n, y.strides[d] * (each ? times : 1), x.strides[d]);
    if (each) wide.add(times, y.strides[d], 0);
  }
  return wide.run(mover);
}

// The diagonal of a matrix as a vector.
inline TensorView diagonal_of(const TensorView& m, int64_t diagonal) {
  TensorView t = m;
  const int64_t row = std::max<int64_t>(-diagonal, 0), column = std::max<int64_t>(diagonal, 0);
  t.rank = 1;
  t.shape[0] = std::max<int64_t>(0, std::min(m.shape[0] - row, m.shape[1] - column));
  t.strides[0] = m.strides[0] + m.strides[1];
  if (t.shape[0] > 0) t.data = m.as<char>() + (row * m.strides[0] + column * m.strides[1]) * size_of(m.element);
  return t;
}

// A vector onto a diagonal of zeros, or a diagonal as a vector; the gradient is the one that y was not.
template <class Mover>
Status diag(const Launch& launch, const Mover& mover, const TensorView& to, const TensorView& from) {
  const int64_t diagonal = attributes<DiagonalAttrs>(launch).diagonal;
  if (to.rank == 1) return mover.copy(to, diagonal_of(from, diagonal));
  const Status s = mover.clear(to);
  return s == Status::Ok ? mover.copy(diagonal_of(to, diagonal), from) : s;
}
template <class Mover>
Status diag(const Launch& launch, const Mover& mover) {
  return diag(launch, mover, launch[MoveArgs::y], launch[MoveArgs::x]);
}
template <class Mover>
Status diag_backward(const Launch& launch, const Mover& mover) {
  return diag(launch, mover, launch[MoveBackwardArgs::dx], launch[MoveBackwardArgs::dy]);
}

// The axes of dx as pad or repeat made dy of them, dx widened to the rank of dy, which is at least 1; that rank.
inline int gradient_axes(const Launch& launch, bool padded, Axis (&axes)[kMaxRank]) {
  using Args = MoveBackwardArgs;
  const int given = launch[Args::dy].rank, rank = std::max(given, 1);
  const TensorView dy = widened(launch[Args::dy], rank), dx = widened(launch[Args::dx], rank);
  for (int d = 0; d < rank; ++d)
    axes[d] = padded ? padded_axis(dx.shape[d], dy.shape[d], given ? low_of(launch, d) : 0)
                     : Axis{dx.shape[d], dy.shape[d], 0, 0};
  return rank;
}

// Where the slice that `source` fills may start: below this.
inline int64_t start_limit(const TensorView& x, const TensorView& source, const SliceAttrs& attrs) {
  const int64_t n = source.shape[attrs.axis];
  return x.shape[attrs.axis] - (n > 0 ? (n - 1) * attrs.step + 1 : 0) + 1;
}

inline int64_t saturating_add(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return b < 0 ? INT64_MIN : INT64_MAX - 1;
  return sum;
}

}  // namespace baracuda::layout
