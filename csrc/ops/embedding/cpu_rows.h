// What the embedding's kernels on the CPU share: ids, rows of tables, and gradients sorted by id, so that threads do
// not change a bit.
#pragma once
#include <algorithm>
#include <cstring>

#include "host/block_sum.h"
#include "host/in_range.h"
#include "ops/embedding/skus.h"

namespace baracuda::embedding {

inline constexpr int64_t kWork = 32768;                     // elements that make a chunk worth handing out
inline constexpr int64_t kBlock = BlockSum<float>::kBlock;  // columns summed together
// Columns of a row that one thread sums; shorter stretches defeat the prefetcher.
inline constexpr int64_t kWidth = 2048;
inline constexpr int64_t kStrip = 128;  // columns of a bag whose sums fit into registers

// Hands f(position, id) every id in order; false, with the failure noted, at the first one outside [0, rows).
template <class F>
bool for_each_id(const Launch& launch, int param, int64_t rows, F&& f) {
  const TensorView& ids = launch[param];
  const MergedView view(ids);
  int64_t buffer[kIds];
  const int64_t n = ids.numel();
  for (int64_t begin = 0; begin < n; begin += kIds) {
    const int64_t count = n - begin < kIds ? n - begin : kIds;
    load_span(view, begin, count, buffer);
    for (int64_t i = 0; i < count; ++i) {
      if (static_cast<uint64_t>(buffer[i]) >= static_cast<uint64_t>(rows)) {
        if (launch.failure) *launch.failure = {param, begin + i, buffer[i], rows};
        return false;
      }
      f(begin + i, buffer[i]);
    }
  }
  return true;
}

// The rows of a tensor whose last dimension is a row: where row i begins, in logical order.
class Rows {
 public:
  explicit Rows(const TensorView& t) : stride(t.strides[t.rank - 1]), outer_(leading(t)) {}
  char* at(int64_t row) const {
    int64_t offset = 0;
    if (outer_.rank == 1) {
      offset = row * outer_.strides[0];
    } else {
      for_each_run(outer_, row, 1, [&](int64_t o, int64_t, int64_t, int64_t) { offset = o; });
    }
    return outer_.at(offset);
  }
  // Whether rows are dense and `step()` elements apart.
  bool even() const { return stride == 1 && outer_.rank == 1; }
  int64_t step() const { return outer_.strides[0]; }
  const int64_t stride;  // from one column to the next

 private:
  static MergedView leading(TensorView t) {
    --t.rank;
    return MergedView(t);
  }
  MergedView outer_;
};

inline int64_t rows_per_chunk(int64_t columns) { return columns > 0 && columns < kWork ? kWork / columns : 1; }

// Stable radix sort by id, 11 bits at a time; the result is in the array returned.
inline Occurrence* sort_by_id(Occurrence* from, Occurrence* to, int64_t n, int64_t rows) {
  constexpr int kBits = 11;
  constexpr int64_t kDigits = 1 << kBits;
  for (int shift = 0; shift < 63 && ((rows - 1) >> shift) > 0; shift += kBits) {
    int64_t place[kDigits] = {};
    for (int64_t i = 0; i < n; ++i) ++place[(from[i].id >> shift) & (kDigits - 1)];
    int64_t sum = 0;
    for (int64_t& p : place) {
      const int64_t count = p;
      p = sum;
      sum += count;
    }
    for (int64_t i = 0; i < n; ++i) to[place[(from[i].id >> shift) & (kDigits - 1)]++] = from[i];
    Occurrence* other = from;
    from = to, to = other;
  }
  return from;
}

// Adds row x[0..n) of `element` to the sums, through a buffer where it is not contiguous in the compute type already.
template <class T>
void add_row(BlockSum<T>& sums, Element element, const char* x, int64_t stride, int64_t n, T* buffer) {
  if (stride == 1 && size_of(element) == static_cast<int64_t>(sizeof(T))) {
    sums.add(reinterpret_cast<const T*>(x), n);
    return;
  }
  load<T>(element, x, stride, buffer, n);
  sums.add(buffer, n);
}

// Calls row(first, last, column, n) for every id and n <= kBlock columns of it; [first, last) are its occurrences.
template <class Row>
void for_each_row(const Occurrence* sorted, int64_t total, int64_t columns, Row&& row) {
  if (columns == 0 || total == 0) return;
  const int64_t stripes = (columns + kWidth - 1) / kWidth, per_part = rows_per_chunk(std::min(columns, kWidth));
  parallel_for((total + per_part - 1) / per_part * stripes, 1, [&](int64_t begin_part, int64_t end_part) {
    for (int64_t k = begin_part; k < end_part; ++k) {
      // The ids whose first occurrence lies in this part of the list.
      int64_t i = k / stripes * per_part;
      const int64_t end = std::min(i + per_part, total), column = k % stripes * kWidth,
                    column_end = std::min(column + kWidth, columns);
      while (i > 0 && i < end && sorted[i].id == sorted[i - 1].id) ++i;
      while (i < end) {
        int64_t next = i + 1;
        while (next < total && sorted[next].id == sorted[i].id) ++next;
        for (int64_t c = column; c < column_end; c += kBlock)
          row(sorted + i, sorted + next, c, std::min(kBlock, column_end - c));
        i = next;
      }
    }
  });
}

inline void fill_zero(const TensorView& t) {
  const MergedView view(t);
  const int64_t size = size_of(t.element);
  parallel_for(t.numel(), 4 * kWork, [&](int64_t begin, int64_t end) {
    for_each_run(view, begin, end - begin, [&](int64_t offset, int64_t stride, int64_t, int64_t n) {
      if (stride == 1) {
        std::memset(view.at(offset), 0, static_cast<size_t>(n * size));
      } else {
        for (int64_t k = 0; k < n; ++k) std::memset(view.at(offset + k * stride), 0, static_cast<size_t>(size));
      }
    });
  });
}

}  // namespace baracuda::embedding
