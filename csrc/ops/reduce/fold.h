// How values are folded: accumulators along a row and across columns, for sums, maxima and minima.
#pragma once
#include <type_traits>

#include "backends/cpu/lanes.h"
#include "ops/reduce/skus.h"

namespace baracuda::reduce {

// Sums: blocks of at most 64 terms per lane are added plainly, block sums with compensation.
template <class C>
struct SumRow {
  CompensatedSum<C> total;
  void add(const C* p, int64_t n) {
    constexpr int64_t kBlock = Lanes<C>::kBlock;
    for (; n >= kBlock; n -= kBlock, p += kBlock) total.add(block_sum(p));
    if (n > 0) total.add(lane_sum<C>(n, [](auto v) { return v; }, p));
  }
  C value() const { return total.value(); }
};

template <class C>
struct SumColumns {
  static constexpr int kRowsPerFlush = 64;
  C low[kColumnTile], sum[kColumnTile], error[kColumnTile];
  int64_t n = 0;
  int pending = 0;

  explicit SumColumns(int64_t columns) : n(columns) {
    for (int64_t j = 0; j < n; ++j) low[j] = sum[j] = error[j] = 0;
  }
  void add(const C* r) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) low[j] += r[j];
    if (++pending >= kRowsPerFlush) flush();
  }
  void add4(const C* a, const C* b, const C* c, const C* d) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) low[j] += (a[j] + b[j]) + (c[j] + d[j]);
    if ((pending += 4) >= kRowsPerFlush) flush();
  }
  void flush() {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      C x = low[j], s = sum[j] + x, back = s - sum[j];
      if constexpr (std::is_floating_point_v<C>) error[j] += (sum[j] - (s - back)) + (x - back);
      sum[j] = s;
      low[j] = 0;
    }
    pending = 0;
  }
  const C* finish() {
    flush();
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) low[j] = error[j] == error[j] ? sum[j] + error[j] : sum[j];
    return low;
  }
};

template <bool kMax, class C>
struct ExtremeRow {
  using X = Extreme<kMax, true>;
  C best = X::template start<C>();
  void add(const C* p, int64_t n) {
    C v = lane_extreme<kMax, true>(p, n);
    best = X::takes(v, best) ? v : best;
  }
  C value() const { return best; }
};

template <bool kMax, class C>
struct ExtremeColumns {
  using X = Extreme<kMax, true>;
  C best[kColumnTile];
  int64_t n = 0;

  explicit ExtremeColumns(int64_t columns) : n(columns) {
    for (int64_t j = 0; j < n; ++j) best[j] = X::template start<C>();
  }
  void add(const C* r) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) best[j] = keep(r[j], best[j]);
  }
  void add4(const C* a, const C* b, const C* c, const C* d) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      // One after another: GCC does not make vectors of a tree of selections.
      C m = keep(a[j], best[j]);
      m = keep(b[j], m);
      m = keep(c[j], m);
      best[j] = keep(d[j], m);
    }
  }
  const C* finish() { return best; }

 private:
  // Bitwise, so that the loop has no branch.
  static C keep(C x, C m) {
    bool better = kMax ? x > m : x < m;
    if constexpr (std::is_floating_point_v<C>) better = better | (x != x);
    return better ? x : m;
  }
};

template <class C>
struct SumFold {
  using Row = SumRow<C>;
  using Columns = SumColumns<C>;
};
template <bool kMax, class C>
struct ExtremeFold {
  using Row = ExtremeRow<kMax, C>;
  using Columns = ExtremeColumns<kMax, C>;
};

}  // namespace baracuda::reduce
