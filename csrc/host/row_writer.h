// Writes the rows of a result. Values are computed a few lines at a time: halves are then rounded while they are in L1,
// and results too large for the caches go past them while the row that is read next is fetched, so that reading and
// writing memory overlap (rms_norm of 4096 x 4096 f32: 4.6 ms row by row, 3.1 ms like this).
#pragma once
#include <algorithm>

#include "host/rows.h"
#include "host/stream.h"

namespace baracuda {

// Values that are going to be read soon: a dense row, or nothing.
struct Ahead {
  const char* from = nullptr;
  int64_t size = 0;

  Ahead() = default;
  Ahead(const RowMap& m, int64_t row, int64_t rows, int64_t at) {
    if (!m.present() || row >= rows || !m.inner.dense()) return;
    size = size_of(m.element);
    from = m.row(row) + at * size;
  }
  // Inlined, or GCC takes the call for one that does nothing.
  [[gnu::always_inline]] void fetch(int64_t begin, int64_t n) const {
    if (!from) return;
    for (int64_t b = begin * size; b < (begin + n) * size; b += kStreamLine) __builtin_prefetch(from + b);
  }
};

template <class C>
class RowWriter {
 public:
  // in_place: rows are written where they were read, and so are in the caches.
  RowWriter(const RowMap& y, bool in_place)
      : y_(y),
        direct_(y.direct<C>()),
        dense_(y.inner.dense()),
        bf16_(std::is_same_v<C, float> && y.element == Element::BF16),
        store_(storer<C>(y.element)),
        size_(size_of(y.element)) {
    streams_ = dense_ && !in_place && y.rows() * y.length() * size_ >= kStreamBytes;
  }
  RowWriter(const RowWriter&) = delete;
  ~RowWriter() {
    if (streams_) stream_fence();
  }

  // Puts values [at, at + n) of the row at `row`. piece(begin, count, to) computes those from at + begin on, in order.
  template <class Piece, class... A>
  void put(char* row, int64_t at, int64_t n, Piece&& piece, const A&... ahead) const {
    put_rows<1>(&row, at, n, [&](int64_t begin, int64_t count, C* const* to) { piece(begin, count, *to); }, ahead...);
  }
  // The same for kRows rows at once, row k of a piece at to[k].
  template <int kRows, class Piece, class... A>
  void put_rows(char* const* rows, int64_t at, int64_t n, Piece&& piece, const A&... ahead) const {
    C* to[kRows];
    if (direct_ && !streams_) {
      for (int k = 0; k < kRows; ++k) to[k] = reinterpret_cast<C*>(rows[k]) + at;
      return piece(0, n, to);
    }
    alignas(kStreamLine) C values[kRows][kPiece];
    for (int k = 0; k < kRows; ++k) to[k] = values[k];
    const int64_t head = streams_ ? (-reinterpret_cast<intptr_t>(rows[0] + at * size_) & (kStreamLine - 1)) / size_ : 0;
    for (int64_t i = 0; i < n;) {
      const int64_t count = std::min(i == 0 && head > 0 ? head : kPiece, n - i);
      piece(i, count, to);
      for (int k = 0; k < kRows; ++k) place(rows[k], at + i, count, values[k]);
      (ahead.fetch(i, count), ...);
      i += count;
    }
  }

 private:
  static constexpr int64_t kPiece = kStreamPiece / sizeof(C);

  void place(char* row, int64_t at, int64_t n, const C* values) const {
    if (!dense_) return write(y_, row, at, n, values);
    char* to = row + at * size_;
    if (direct_) return stream_bytes(to, reinterpret_cast<const char*>(values), n * size_);
    if (!streams_) return narrow(values, to, n);
    alignas(kStreamLine) char rounded[kStreamPiece];
    narrow(values, rounded, n);
    stream_bytes(to, rounded, n * size_);
  }
  void narrow(const C* values, char* to, int64_t n) const {
    if constexpr (std::is_same_v<C, float>) {
      if (bf16_) return float_to_bf16(values, reinterpret_cast<uint16_t*>(to), n);
    }
    store_(to, 1, values, n);
  }

  const RowMap& y_;
  bool direct_, dense_, bf16_, streams_;
  StoreFn<C> store_;
  int64_t size_;
};

}  // namespace baracuda
