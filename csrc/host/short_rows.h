// Rows so short that folding the lanes of each would cost more than its values: as many at once as a vector has lanes,
// which are then folded together. Softmax of 32768 x 32 f32: 600 us row by row, 250 us like this.
#pragma once
#include "baracuda/math/exp.h"
#include "host/row_writer.h"

namespace baracuda {

inline constexpr int64_t kShortRow = 256;

inline bool is_short(const RowMap& m) { return m.inner.rank == 1 && m.inner.dense() && m.length() <= kShortRow; }

// Rows of a tensor, kWidth at a time, one behind the other in values of the compute type.
template <class C>
class ShortRows {
 public:
  static constexpr int kRows = Lanes<C>::kWidth;
  // A block of rows in the compute type.
  struct Block {
    alignas(kStreamLine) C values[kRows * kShortRow];
  };

  explicit ShortRows(const RowMap& m, bool in_place = false)
      : m_(m),
        n_(m.length()),
        size_(size_of(m.element)),
        adjacent_(m.outer.rank == 0 || (m.outer.rank == 1 && m.outer.strides[0] == n_)),
        direct_(adjacent_ && m.direct<C>()),
        streams_(adjacent_ && !in_place && m.rows() * n_ * size_ >= kStreamBytes) {}
  ShortRows(const ShortRows&) = delete;
  ~ShortRows() {
    if (streams_) stream_fence();
  }

  const C* read(int64_t row, int rows, Block& block) const {
    const char* from = m_.row(row);
    if (direct_) return reinterpret_cast<const C*>(from);
    if (adjacent_) {
      load<C>(m_.element, from, 1, block.values, rows * n_);
      return block.values;
    }
    for (int r = 0; r < rows; ++r) load<C>(m_.element, m_.row(row + r), 1, block.values + r * n_, n_);
    return block.values;
  }
  // Where to compute rows that write() is then given.
  C* target(int64_t row, Block& block) const {
    return direct_ && !streams_ ? reinterpret_cast<C*>(m_.row(row)) : block.values;
  }
  void write(int64_t row, int rows, const C* values) const {
    char* to = m_.row(row);
    if (streams_) return stream(to, rows * n_, values);
    if (direct_) return;
    if (adjacent_) return store<C>(m_.element, to, 1, values, rows * n_);
    for (int r = 0; r < rows; ++r) store<C>(m_.element, m_.row(row + r), 1, values + r * n_, n_);
  }

 private:
  void stream(char* to, int64_t n, const C* values) const {
    if (direct_) return stream_bytes(to, reinterpret_cast<const char*>(values), n * size_);
    alignas(kStreamLine) char narrow[kRows * kShortRow * sizeof(C)];
    store<C>(m_.element, narrow, 1, values, n);
    stream_bytes(to, narrow, n * size_);
  }

  const RowMap& m_;
  int64_t n_, size_;
  bool adjacent_, direct_, streams_;
};

// Values of rows [begin, begin + n), one each.
template <class C>
inline void put_rows(const RowMap& m, int64_t begin, int64_t n, const C* values) {
  m.outer.runs(begin, n, [&](int64_t offset, int64_t stride, int64_t count) {
    store<C>(m.element, m.at(offset), stride, values, count);
    values += count;
  });
}

// Calls vector(r) for the lanes of each of `rows` rows and folds them: to[r] is row r's.
template <class C, class Vector, class Join>
inline typename Lanes<C>::Vec fold_rows_of(int rows, const Vector& vector, const Join& join) {
  typename Lanes<C>::Vec lanes[Lanes<C>::kWidth];  // not cleared at once, which would take as long as a row
  for (int r = rows; r < Lanes<C>::kWidth; ++r) lanes[r] = typename Lanes<C>::Vec{};
  for (int r = 0; r < rows; ++r) lanes[r] = vector(r);
  return fold_vectors<C>(lanes, join);
}

// Of `rows` rows of n values, one behind the other: their maxima, and the sums of exp(x - max), which goes to `powers`.
template <class C>
struct RowWeights {
  typename Lanes<C>::Vec max, sum;
};
template <class C>
inline RowWeights<C> weigh_rows(const C* v, int rows, int64_t n, C* powers) {
  const auto max =
      fold_rows_of<C>(rows, [&](int k) { return lane_extremes<true>(v + k * n, n); }, TakeExtreme<true, false>());
  for (int k = 0; k < rows; ++k) {
    const C top = max[k];
#pragma GCC ivdep
    for (int64_t i = k * n; i < (k + 1) * n; ++i) powers[i] = v[i] - top;
  }
  // One run, where rows may be shorter than a vector.
#pragma GCC ivdep
  for (int64_t i = 0; i < rows * n; ++i) powers[i] = math::exp_weight(powers[i]);
  const auto sum =
      fold_rows_of<C>(rows, [&](int k) { return lane_sums<C>(n, [](auto e) { return e; }, powers + k * n); }, Add());
  return {max, sum};
}

}  // namespace baracuda
