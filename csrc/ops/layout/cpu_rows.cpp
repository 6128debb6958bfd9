// Gradients of pads and repeats, triangles and sequences on the CPU, row by row.
#include <algorithm>

#include "core/compute.h"
#include "core/parallel.h"
#include "host/block_sum.h"
#include "host/move_row.h"
#include "host/rows.h"
#include "host/runs.h"
#include "ops/layout/blocks.h"
#include "ops/layout/cpu.h"

namespace baracuda::layout {
namespace {

// dx = the sum of dy over all places that an element went to. A row of dx is made from the rows of dy that its outer
// coordinates went to, a block of columns at a time.
template <class C>
class Gradient {
  static constexpr int64_t kBlock = BlockSum<C>::kBlock;

 public:
  Gradient(const TensorView& dy, const TensorView& dx, const Axis* axes, int32_t mode)
      : dy_(dy), dx_(dx), axes_(axes), mode_(mode), last_(dx.rank - 1), size_(size_of(dx.element)) {}

  void run() const {
    const int64_t columns = dx_.shape[last_], rows = columns ? dx_.numel() / columns : 0;
    parallel_for(rows, row_grain(columns), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        for (int64_t column = 0; column < columns; column += kBlock)
          block(row, column, std::min(kBlock, columns - column));
    });
  }

 private:
  struct Block {
    BlockSum<C> sums;
    int64_t begin, size;
    C buffer[kBlock];
  };

  void block(int64_t row, int64_t column, int64_t n) const {
    Block b;
    b.begin = column - axes_[last_].skipped, b.size = n;
    b.sums.start(n);
    int64_t at[kMaxRank], count[kMaxRank], index[kMaxRank] = {}, total = 1, to = column * dx_.strides[last_];
    for (int d = last_ - 1; d >= 0; --d) {
      const int64_t c = row % dx_.shape[d];
      row /= dx_.shape[d];
      to += c * dx_.strides[d];
      at[d] = c - axes_[d].skipped;
      total *= count[d] = occurrences(axes_[d], mode_, at[d]);
    }
    for (int64_t i = 0; i < total; ++i) {
      int64_t from = 0;
      for (int d = 0; d < last_; ++d) from += occurrence(axes_[d], mode_, at[d], index[d]) * dy_.strides[d];
      add_row(b, from);
      for (int d = last_ - 1; d >= 0 && ++index[d] == count[d]; --d) index[d] = 0;
    }
    store<double>(dx_.element, dx_.as<char>() + to * size_, dx_.strides[last_], b.sums.result(), n);
  }

  // All occurrences along the last axis, as runs of columns that step evenly.
  void add_row(Block& b, int64_t from) const {
    const Axis& a = axes_[last_];
    const int64_t n = a.size, high = a.padded - a.low - n, last = n - 1;
    if (mode_ >= kRepeatWhole) {
      const int64_t times = n ? a.padded / n : 0;
      for (int64_t k = 0; k < times; ++k)
        mode_ == kRepeatWhole ? add(b, from, 0, n, k * n, 1) : add(b, from, 0, n, k, times);
      return;
    }
    add(b, from, 0, n, a.low, 1);
    if (mode_ == kReflect) {
      add(b, from, 1, a.low, a.low - 1, -1);
      add(b, from, last - high, high, a.low + last + high, -1);
    } else if (mode_ == kCircular) {
      add(b, from, n - a.low, a.low, 0, 1);
      add(b, from, 0, high, a.low + n, 1);
    } else if (mode_ == kReplicate) {
      for (int64_t k = 0; k < a.low; ++k) add(b, from, 0, 1, k, 1);
      for (int64_t k = 0; k < high; ++k) add(b, from, last, 1, a.low + n + k, 1);
    }
  }

  // Adds dy[place + k * step] to column `first + k`, as far as these lie in the block.
  void add(Block& b, int64_t from, int64_t first, int64_t count, int64_t place, int64_t step) const {
    const int64_t begin = std::max(first, b.begin), end = std::min(first + count, b.begin + b.size);
    if (begin >= end) return;
    const int64_t stride = dy_.strides[last_], offset = from + (place + (begin - first) * step) * stride;
    load<C>(dy_.element, dy_.as<char>() + offset * size_, step * stride, b.buffer, end - begin);
    b.sums.add(b.buffer, end - begin, begin - b.begin);
  }

  TensorView dy_, dx_;
  const Axis* axes_;
  int32_t mode_;
  int last_;
  int64_t size_;
};

Status gradient(const TensorView& dy, const TensorView& dx, const Axis* axes, int32_t mode) {
  with_float_type(dx.element, [&](auto c) { Gradient<decltype(c)>(dy, dx, axes, mode).run(); });
  return Status::Ok;
}

}  // namespace

Status pad_backward(const Launch& launch) {
  Axis axes[kMaxRank];
  const int rank = gradient_axes(launch, true, axes);
  const int32_t mode = static_cast<int32_t>(attributes<PadAttrs>(launch).mode);
  return gradient(widened(launch[MoveBackwardArgs::dy], rank), widened(launch[MoveBackwardArgs::dx], rank), axes, mode);
}

Status repeat_backward(const Launch& launch) {
  Axis axes[kMaxRank];
  const int rank = gradient_axes(launch, false, axes);
  return gradient(widened(launch[MoveBackwardArgs::dy], rank), widened(launch[MoveBackwardArgs::dx], rank), axes,
                  attributes<RepeatAttrs>(launch).each ? kRepeatEach : kRepeatWhole);
}

Status triangle(const Launch& launch, bool upper) {
  const TensorView &x = launch[MoveArgs::x], &y = launch[MoveArgs::y];
  const int64_t diagonal = attributes<DiagonalAttrs>(launch).diagonal, size = size_of(y.element);
  const int r = y.rank - 2, c = y.rank - 1;
  const int64_t columns = y.shape[c];
  const RowMap from = row_map(x, 1u << c), to = row_map(y, 1u << c);
  if (columns == 0) return Status::Ok;
  parallel_for(y.numel() / columns, row_grain(columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t split =
          std::clamp<int64_t>(saturating_add(saturating_add(row % y.shape[r], diagonal), upper ? 0 : 1), 0, columns);
      const int64_t first = upper ? split : 0, kept = upper ? columns - split : split;
      char *out = to.row(row), *in = from.row(row);
      if (out != in)
        move_row(size, out + first * y.strides[c] * size, y.strides[c], in + first * x.strides[c] * size, x.strides[c],
                 kept);
      clear_row(size, out + (upper ? 0 : split) * y.strides[c] * size, y.strides[c], columns - kept);
    }
  });
  return Status::Ok;
}

namespace {

template <class C, class F>
void sequence(const TensorView& y, F&& value) {
  const MergedView view(y);
  parallel_for(y.numel(), kParallelGrain, [&](int64_t begin, int64_t end) {
    C buffer[1024];
    for (int64_t n; begin < end; begin += n) {
      n = std::min<int64_t>(1024, end - begin);
      for (int64_t i = 0; i < n; ++i) buffer[i] = value(begin + i);
      store_span(view, begin, n, buffer);
    }
  });
}

}  // namespace

Status arange(const Launch& launch) {
  using Args = ArangeArgs;
  const TensorView& y = launch[Args::y];
  const Scalar &first = launch.scalars[Args::start], &each = launch.scalars[Args::step];
  if (is_float(y.element)) {
    const double start = first.as_f64(), step = each.as_f64();
    sequence<double>(y, [=](int64_t i) { return start + static_cast<double>(i) * step; });
  } else {
    const uint64_t start = static_cast<uint64_t>(first.as_i64());
    const uint64_t step = static_cast<uint64_t>(each.as_i64());
    sequence<uint64_t>(y, [=](int64_t i) { return start + static_cast<uint64_t>(i) * step; });
  }
  return Status::Ok;
}

Status linspace(const Launch& launch) {
  using Args = LinspaceArgs;
  const TensorView& y = launch[Args::y];
  const double start = launch.scalars[Args::start].as_f64(), end = launch.scalars[Args::end].as_f64();
  const int64_t n = y.numel(), half = n / 2;
  const double step = n > 1 ? (end - start) / static_cast<double>(n - 1) : 0;
  sequence<double>(y, [=](int64_t i) {
    return i < half || n == 1 ? start + static_cast<double>(i) * step : end - static_cast<double>(n - 1 - i) * step;
  });
  return Status::Ok;
}

}  // namespace baracuda::layout
