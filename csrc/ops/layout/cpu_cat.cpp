// Tensors one behind the other along their last axes, where a row of the result is short: all parts of a row are
// written before the next row is. Part by part every other stretch of the result is left for later, and its memory is
// fetched and written twice.
#include "ops/layout/cpu_cat.h"

#include "core/parallel.h"
#include "host/row_pieces.h"
#include "host/rows.h"
#include "host/stream.h"
#include "ops/layout/skus.h"

namespace baracuda::layout {
namespace {

constexpr int64_t kRowBytes = 4096;  // of the result; copies part by part are as fast for longer ones
constexpr int kParts = 16;
constexpr int64_t kGroupBytes = 1024;  // that are put together before they are streamed
constexpr int64_t kNearBytes = 1024;   // of rows that are written part by part: the first core's cache keeps them

// One tensor's rows, `step` bytes apart.
struct Part {
  const char* from;
  int64_t bytes, step;
  void (*move)(const Part& part, int64_t row, char* to, int64_t to_step, int64_t n);
};

// A part of n rows.
template <int kPiece, bool kOne>
void move_part(const Part& part, int64_t row, char* to, int64_t to_step, int64_t n) {
  const char* from = part.from + row * part.step;
  for (const int64_t bytes = part.bytes; n > 0; --n, from += part.step, to += to_step)
    move_pieces<kPiece, kOne>(to, from, bytes);
}

class Rows {
 public:
  // Whether all rows are dense, short and at even distances.
  bool read(const Launch& launch) {
    const int axis = static_cast<int>(attributes<ListAttrs>(launch).axis);
    const TensorView &y = launch[ListArgs::y], *list = &launch[ListArgs::tensors];
    if (y.rank == 0 || y.numel() == 0) return false;
    const uint32_t inner = trailing_mask(y.rank, y.rank - axis);
    const RowMap to = row_map(y, inner);
    size_ = size_of(y.element), n_ = to.rows(), bytes_ = to.length() * size_;
    if (!even(to) || bytes_ > kRowBytes) return false;
    to_ = to.data, step_ = to.outer.rank ? to.outer.strides[0] * size_ : bytes_;
    for (int k = 0; k < launch.count(ListArgs::tensors); ++k) {
      if (list[k].numel() == 0) continue;
      const RowMap from = row_map(list[k], inner);
      if (count_ == kParts || !even(from)) return false;
      const int64_t bytes = from.length() * size_;
      parts_[count_++] = {from.data, bytes, from.outer.rank ? from.outer.strides[0] * size_ : 0,
                          with_pieces(bytes, []<int kPiece, bool kOne>() { return &move_part<kPiece, kOne>; })};
    }
    return true;
  }

  void copy() const {
    const bool streams = step_ == bytes_ && n_ * bytes_ >= kStreamBytes;
    const int64_t at_once = std::max<int64_t>(1, (streams ? kGroupBytes : kNearBytes) / bytes_);
    parallel_for(n_, row_grain(bytes_ / size_), [&](int64_t begin, int64_t end) {
      alignas(kStreamLine) char group[kRowBytes + kGroupBytes];
      for (int64_t r = begin, n; r < end; r += n) {
        n = std::min(at_once, end - r);
        if (!streams) {
          copy_rows(r, n, to_ + r * step_, step_);
        } else {
          copy_rows(r, n, group, bytes_);
          stream_bytes(to_ + r * bytes_, group, n * bytes_);
        }
      }
      if (streams) stream_fence();
    });
  }

 private:
  static bool even(const RowMap& m) { return m.outer.rank <= 1 && m.inner.dense(); }
  void copy_rows(int64_t row, int64_t n, char* to, int64_t step) const {
    for (int k = 0; k < count_; ++k) {
      parts_[k].move(parts_[k], row, to, step, n);
      to += parts_[k].bytes;
    }
  }

  char* to_ = nullptr;
  int64_t size_ = 1, n_ = 0, bytes_ = 0, step_ = 0;
  int count_ = 0;
  Part parts_[kParts];
};

}  // namespace

bool cat_short_rows(const Launch& launch) {
  Rows rows;
  if (!rows.read(launch)) return false;
  rows.copy();
  return true;
}

}  // namespace baracuda::layout
