// How values are folded across columns that lie side by side: a vector of accumulators for each vector of columns.
#pragma once
#include "ops/reduce/fold.h"

namespace baracuda::reduce {

// Columns that vectors of V reach, where n are wanted.
template <class V>
constexpr int64_t whole_vectors(int64_t n) {
  return (n + Lanes<V>::kWidth - 1) / Lanes<V>::kWidth * Lanes<V>::kWidth;
}

// acc[j] = step(acc[j], value j of each of some rows, one row after the other) for n columns; acc is as long as whole
// vectors. GCC makes no vectors of selections between values that it loads one by one.
template <class V, int kRows, class Step>
[[gnu::always_inline]] inline void step_columns(V* acc, const V* const (&rows)[kRows], int64_t n, const Step& step) {
  using L = Lanes<V>;
  const auto put = [acc](int64_t j, typename L::Vec v)
                       __attribute__((always_inline)) { std::memcpy(acc + j, &v, sizeof v); };
  int64_t j = 0;
  for (; j + L::kWidth <= n; j += L::kWidth) {
    typename L::Vec m = L::load(acc + j);
#pragma GCC unroll 4
    for (int k = 0; k < kRows; ++k) m = step(m, L::load(rows[k] + j));
    put(j, m);
  }
  if (j == n) return;
  typename L::Vec m = L::load(acc + j);
#pragma GCC unroll 4
  for (int k = 0; k < kRows; ++k) m = step(m, L::load_first(rows[k] + j, n - j));
  put(j, m);
}

// Sums: blocks of at most 64 terms are added plainly, block sums with compensation.
template <class C>
struct SumColumns {
  static constexpr int64_t kTile = kColumnTile;
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
  // Eight rows of bf16 values as they are stored.
  void add8_bf16(const uint16_t* const (&r)[8])
    requires std::is_same_v<C, float>
  {
    const auto pair = [&](int k, int64_t j) { return bf16_to_float(r[k][j]) + bf16_to_float(r[k + 1][j]); };
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) low[j] += (pair(0, j) + pair(2, j)) + (pair(4, j) + pair(6, j));
    if ((pending += 8) >= kRowsPerFlush) flush();
  }
  void merge(const C* p) { add(p); }
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

template <bool kMax, class V>
struct ExtremeColumns {
  static constexpr int64_t kTile = kColumnTile;
  V best[kTile];
  int64_t n;

  explicit ExtremeColumns(int64_t columns) : n(columns) {
    std::fill_n(best, whole_vectors<V>(n), Extreme<kMax, true>::template start<V>());
  }
  void add(const V* r) { step_columns<V, 1>(best, {r}, n, TakeExtreme<kMax, true>()); }
  void add4(const V* a, const V* b, const V* c, const V* d) {
    step_columns<V, 4>(best, {a, b, c, d}, n, TakeExtreme<kMax, true>());
  }
  void merge(const V* p) { add(p); }
  const V* finish() { return best; }
};

template <class C>
struct ProductColumns {
  static constexpr int64_t kTile = kColumnTile;
  C total[kTile];
  int64_t n = 0;

  explicit ProductColumns(int64_t columns) : n(columns) { std::fill_n(total, n, C(1)); }
  void add(const C* r) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) total[j] *= r[j];
  }
  void add4(const C* a, const C* b, const C* c, const C* d) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) total[j] *= (a[j] * b[j]) * (c[j] * d[j]);
  }
  void merge(const C* p) { add(p); }
  const C* finish() { return total; }
};

// Counted in words, for as many rows as a word can count.
template <class W>
struct CountColumns {
  static constexpr int64_t kTile = kColumnTile;
  W found[kTile];
  int64_t total[kTile];
  int64_t n, pending = 0;

  explicit CountColumns(int64_t columns) : n(columns) {
    std::fill_n(found, whole_vectors<W>(n), W(0));
    std::fill_n(total, n, 0);
  }
  void add(const W* r) { add_rows<1>({r}); }
  void add4(const W* a, const W* b, const W* c, const W* d) { add_rows<4>({a, b, c, d}); }
  void merge(const int64_t* p) {
    for (int64_t j = 0; j < n; ++j) total[j] += p[j];
  }
  const int64_t* finish() {
    flush();
    return total;
  }

 private:
  template <int kRows>
  void add_rows(const W* const (&rows)[kRows]) {
    if (pending + kRows > most_counted<W>) flush();
    step_columns<W, kRows>(found, rows, n, [](auto m, auto x) { return m - decltype(m)(x != 0); });
    pending += kRows;
  }
  void flush() {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) total[j] += static_cast<int64_t>(found[j]), found[j] = 0;
    pending = 0;
  }
};

// kExact: the bits of a result do not depend on the order of folding.
template <class C>
struct SumFold {
  static constexpr bool kExact = std::is_integral_v<C>;
  using State = C;
  using Row = SumRow<C>;
  using Columns = SumColumns<C>;
};
template <bool kMax, class V>
struct ExtremeFold {
  static constexpr bool kExact = true;
  using State = V;
  using Row = ExtremeRow<kMax, V>;
  using Columns = ExtremeColumns<kMax, V>;
};
template <class C>
struct ProductFold {
  static constexpr bool kExact = std::is_integral_v<C>;
  using State = C;
  using Row = ProductRow<C>;
  using Columns = ProductColumns<C>;
};
template <class W>
struct CountFold {
  static constexpr bool kExact = true;
  using State = int64_t;
  using Row = CountRow<W>;
  using Columns = CountColumns<W>;
};

}  // namespace baracuda::reduce
