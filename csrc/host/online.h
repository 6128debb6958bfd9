// sum(exp(x - max)) of columns side by side in one pass over memory: when a larger value comes, the sum so far shrinks.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

#include "baracuda/math/exp.h"

namespace baracuda {

// What is taken from values before exp: finite, so that no NaN arises that no value was.
template <class C>
BCU_FN C exp_shift(C max) {
  constexpr C kMost = std::numeric_limits<C>::max();
  return max > kMost ? kMost : max < -kMost ? -kMost : max;
}
// e^(x - shift) for a shift that is exp_shift of a maximum; e^0 for an infinity.
template <class C>
BCU_FN C exp_below(C x, C shift) {
  return math::exp_weight(math::at_most(x, shift) - shift);
}

// NaN is passed over by the maximum and gets into the sum. Sums of 256 rows are added to a second sum, so that rounding
// errors of equal terms do not pile up. Few columns at a time, so that four rows of them stay in L1 from the search for
// a larger value, which soon finds none, to the exponentials. +inf counts as such with kInfinite; else it makes NaN.
template <class C, int64_t kWidth, bool kInfinite>
struct OnlineColumns {
  static constexpr int64_t kPiece = 256 / sizeof(C);
  static constexpr int kRowsPerFlush = 256;
  C max[kWidth], shift[kWidth], low[kWidth], sum[kWidth];
  int64_t n;
  int pending = 0;

  explicit OnlineColumns(int64_t columns) : n(columns) {
    for (int64_t j = 0; j < n; ++j) max[j] = -std::numeric_limits<C>::infinity(), shift[j] = low[j] = sum[j] = 0;
  }
  void add(const C* r) { add_rows<1>({r}); }
  void add4(const C* a, const C* b, const C* c, const C* d) { add_rows<4>({a, b, c, d}); }

  // Columns [first, first + count), count <= kPiece, of some rows; then took(), once for all columns.
  template <int kRows>
  void add_piece(const C* const (&rows)[kRows], int64_t first, int64_t count) {
    C *best = max + first, *from = shift + first, *total = low + first, top[kPiece];
    int grew = 0;
#pragma GCC ivdep
    for (int64_t j = 0; j < count; ++j) {
      // One after another: GCC does not make vectors of a tree of selections.
      C m = best[j];
      for (const C* row : rows) m = row[j] > m ? row[j] : m;
      top[j] = m;
      grew |= m > best[j];
    }
    if (grew) raise(top, first, count);
#pragma GCC ivdep
    for (int64_t j = 0; j < count; ++j) {
      if constexpr (kRows == 4)
        total[j] += (term(rows[0][j], from[j]) + term(rows[1][j], from[j])) +
                    (term(rows[2][j], from[j]) + term(rows[3][j], from[j]));
      else
        for (const C* row : rows) total[j] += term(row[j], from[j]);
    }
  }
  void took(int rows) {
    if ((pending += rows) >= kRowsPerFlush) flush();
  }
  void flush() {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) sum[j] += low[j], low[j] = 0;
    pending = 0;
  }

 private:
  BCU_FN C term(C x, C from) { return kInfinite ? exp_below(x, from) : math::exp_weight(x - from); }

  template <int kRows>
  void add_rows(const C* const (&rows)[kRows]) {
    for (int64_t j = 0; j < n; j += kPiece) {
      const C* at[kRows];
      for (int k = 0; k < kRows; ++k) at[k] = rows[k] + j;
      add_piece<kRows>(at, j, std::min(kPiece, n - j));
    }
    took(kRows);
  }

  void raise(const C* top, int64_t first, int64_t count) {
#pragma GCC ivdep
    for (int64_t j = first; j < first + count; ++j) {
      const C m = top[j - first], shrink = max[j] < m ? exp_below(max[j], exp_shift(m)) : C(1);
      low[j] *= shrink, sum[j] *= shrink;
      max[j] = m, shift[j] = exp_shift(m);
    }
  }
};

}  // namespace baracuda
