// Row-wise access for reductions, softmax, norms and losses: a tensor as `rows` of `length` elements, whatever its
// strides. Rows are read and written in tiles of the compute type; contiguous rows of that type are used where they
// lie.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "core/collapse.h"
#include "core/compute.h"
#include "core/launch.h"
#include "host/convert.h"
#include "host/halves.h"
#include "host/lanes.h"

namespace baracuda {

// Dimensions of an odometer, outermost first; neighbours that step evenly are merged.
struct Steps {
  int32_t rank = 0;
  int64_t shape[kMaxRank], strides[kMaxRank];  // of `rank` dimensions

  Steps() {}  // clears nothing: a launch makes several, and clearing costs more than a small launch's other work

  void push(int64_t size, int64_t stride) {
    collapse(rank, shape, 1, size, [&](int, int d) -> int64_t& { return strides[d]; }, [&](int) { return stride; });
  }
  bool dense() const { return rank == 0 || (rank == 1 && strides[0] == 1); }
  int64_t count() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[i];
    return n;
  }
  int64_t offset(int64_t index) const {
    if (rank == 1) return index * strides[0];
    int64_t at = 0;
    for (int i = rank - 1; i >= 0; --i) {
      at += index % shape[i] * strides[i];
      index /= shape[i];
    }
    return at;
  }
  // Calls f(offset, stride, n) for the evenly stepped runs that make up positions [begin, begin + n).
  template <class F>
  void runs(int64_t begin, int64_t n, F&& f) const {
    if (rank <= 1) {
      int64_t stride = rank == 0 ? 1 : strides[0];
      f(begin * stride, stride, n);
      return;
    }
    const int64_t inner = shape[rank - 1], stride = strides[rank - 1];
    while (n > 0) {
      int64_t piece = std::min(n, inner - begin % inner);
      f(offset(begin), stride, piece);
      begin += piece;
      n -= piece;
    }
  }
};

struct RowMap {
  char* data = nullptr;
  Element element = Element::F32;
  Steps outer, inner;

  int64_t rows() const { return outer.count(); }
  int64_t length() const { return inner.count(); }
  bool present() const { return data != nullptr; }
  template <class C>
  bool direct() const {
    return element == element_of<C> && inner.dense();
  }
  char* at(int64_t offset) const { return data + offset * size_of(element); }
  char* row(int64_t r) const { return at(outer.offset(r)); }
};

// The dimensions of `t` whose bits are set in `inner` run along the rows, in their order. Absent tensors give a map
// without data.
inline RowMap row_map(const TensorView& t, uint32_t inner) {
  RowMap m;
  if (!t.present()) return m;
  m.data = t.as<char>();
  m.element = t.element;
  for (int i = 0; i < t.rank; ++i) ((inner >> i) & 1u ? m.inner : m.outer).push(t.shape[i], t.strides[i]);
  return m;
}
// The same tensor seen across: its rows are the positions along `inner`, and run over the other dimensions.
inline RowMap across(const RowMap& m) {
  RowMap t = m;
  t.outer = m.inner;
  t.inner = m.outer;
  return t;
}
// Whether neighbours in memory belong to different rows (or the rows are very short), so that many rows are best
// treated side by side.
inline bool side_by_side(const RowMap& m) {
  auto step = [](const Steps& s) { return s.rank ? std::abs(s.strides[s.rank - 1]) : int64_t{1} << 62; };
  constexpr int64_t kFew = 16;
  return m.rows() >= kFew && (step(m.outer) < step(m.inner) || m.length() <= kFew);
}
// Columns of a tile whose `length` rows still fit a core's share of the last-level cache.
inline constexpr int64_t kColumns = 512;
inline int64_t columns_for(int64_t length) {
  return std::clamp<int64_t>((int64_t{1} << 21) / std::max<int64_t>(1, length) / 64 * 64, 64, kColumns);
}

inline uint32_t trailing_mask(int rank, int64_t dims) {
  return ((1u << rank) - 1u) & ~((1u << (rank - static_cast<int>(dims))) - 1u);
}

// Values [begin, begin + n) of the row at `row`: in place where possible, else converted into `buffer`.
template <class C>
const C* read(const RowMap& m, const char* row, int64_t begin, int64_t n, C* buffer) {
  if (m.direct<C>()) return reinterpret_cast<const C*>(row) + begin;
  C* to = buffer;
  m.inner.runs(begin, n, [&](int64_t offset, int64_t stride, int64_t count) {
    load<C>(m.element, row + offset * size_of(m.element), stride, to, count);
    to += count;
  });
  return buffer;
}
// read() for dense rows of which a few lines are read at a time: what it looks up is looked up once.
template <class C>
class RowReader {
 public:
  explicit RowReader(const RowMap& m)
      : m_(m),
        direct_(m.direct<C>()),
        dense_(m.inner.dense()),
        bf16_(std::is_same_v<C, float> && m.element == Element::BF16),
        load_(loader<C>(m.element)),
        size_(size_of(m.element)) {}
  RowReader(const RowReader&) = delete;

  const C* get(const char* row, int64_t begin, int64_t n, C* buffer) const {
    if (direct_) return reinterpret_cast<const C*>(row) + begin;
    if (!dense_) return read(m_, row, begin, n, buffer);
    if constexpr (std::is_same_v<C, float>) {
      if (bf16_) {
        bf16_to_float(reinterpret_cast<const uint16_t*>(row) + begin, buffer, n);
        return buffer;
      }
    }
    load_(row + begin * size_, 1, buffer, n);
    return buffer;
  }

 private:
  const RowMap& m_;
  bool direct_, dense_, bf16_;
  LoadFn<C> load_;
  int64_t size_;
};
// Where to compute a tile that write() is then given: the row itself, or `buffer`.
template <class C>
C* target(const RowMap& m, char* row, int64_t begin, C* buffer) {
  return m.direct<C>() ? reinterpret_cast<C*>(row) + begin : buffer;
}
template <class C>
void write(const RowMap& m, char* row, int64_t begin, int64_t n, const C* from) {
  if (m.direct<C>()) return;
  m.inner.runs(begin, n, [&](int64_t offset, int64_t stride, int64_t count) {
    store<C>(m.element, row + offset * size_of(m.element), stride, from, count);
    from += count;
  });
}
template <class C>
void put(const RowMap& m, int64_t row, C value) {
  store<C>(m.element, m.row(row), 1, &value, 1);
}
template <class C>
C get(const RowMap& m, int64_t row) {
  C value;
  load<C>(m.element, m.row(row), 1, &value, 1);
  return value;
}

// Elements of work below which one more chunk does not pay.
inline constexpr int64_t kParallelGrain = 32768;
// Rows per chunk for rows of `length` elements.
inline int64_t row_grain(int64_t length) { return std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(1, length)); }

// Elements of a tile (16 KiB): a row of this length is converted once and kept, and sums of a tile need no blocks.
template <class C>
inline constexpr int64_t kRowTile = Lanes<C>::kBlock;

}  // namespace baracuda
