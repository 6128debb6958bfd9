// How values are folded along a row: sums, maxima and minima, products, counts. columns.h says how across columns.
#pragma once
#include <type_traits>

#include "core/half.h"
#include "host/narrow_lanes.h"
#include "host/short_rows.h"
#include "ops/reduce/skus.h"

namespace baracuda::reduce {

// Sums of four blocks, `apart` values apart: long streams, which memory serves a third faster than one.
template <class C>
inline void sum_far_blocks(const C* p, int64_t apart, C (&sums)[4]) {
  using L = Lanes<C>;
  typename L::Vec acc[4][L::kVectors] = {};
  for (int64_t i = 0; i < L::kBlock; i += L::kLanes) {
#pragma GCC unroll 4
    for (int b = 0; b < 4; ++b) {
#pragma GCC unroll 16
      for (int k = 0; k < L::kVectors; ++k) acc[b][k] += L::load(p + b * apart + i + k * L::kWidth);
    }
  }
  for (int b = 0; b < 4; ++b) sums[b] = fold_sum<C>(acc[b]);
}

// The sum of values as they are stored, in four groups of 32 lanes, at every ISA level the same ones: group g of step i
// is at p + g * apart + i * kStep. kStep of 32 is for long streams, one of 128 for a row of at least 32 values, whose
// last ones may be fewer than a step's. What is read soon is fetched: memory serves it a quarter faster.
inline constexpr int64_t kBf16Lanes = 32, kBf16Group = 4 * kBf16Lanes, kBf16Piece = 32 * kBf16Lanes;
inline constexpr uint32_t kBf16Even[] = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};

template <int64_t kStep>
[[gnu::always_inline]] inline Lanes<float>::Vec bf16_lanes(const uint16_t* p, int64_t apart, int64_t n) {
  using L = Lanes<float>;
  using Vec = L::Vec;
  typedef uint32_t Words __attribute__((vector_size(kVectorBytes)));
  constexpr int kWords = kBf16Lanes / 2 / L::kWidth;
  Vec acc[4][2][kWords] = {};
  // Of 32 values the last ones, from `first` on.
  const auto add = [&](int g, const uint16_t* from, uint32_t first) __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (int k = 0; k < kWords; ++k) {
      Words pairs, at;
      std::memcpy(&pairs, from + k * 2 * L::kWidth, sizeof pairs);
      std::memcpy(&at, kBf16Even + k * L::kWidth, sizeof at);
      Words low = pairs << 16, high = pairs & 0xffff0000u;
      if (first > 0) low &= Words(at >= first), high &= Words(at + 1 >= first);
      acc[g][0][k] += Vec(low);
      acc[g][1][k] += Vec(high);
    }
  };
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
#pragma GCC unroll 4
    for (int g = 0; g < 4; ++g) {
      const uint16_t* from = p + g * apart + i;
      add(g, from, 0);
      __builtin_prefetch(from + 4 * kBf16Piece);
    }
  }
  if constexpr (kStep > kBf16Lanes) {
#pragma GCC unroll 3
    for (int g = 0; g < 3; ++g)
      if (i + kBf16Lanes <= n) add(g, p + i, 0), i += kBf16Lanes;
    if (i < n) add(3, p + n - kBf16Lanes, static_cast<uint32_t>(kBf16Lanes - (n - i)));
  }
  Vec half[L::kVectors], other[L::kVectors];
  std::memcpy(half, acc[0], sizeof half), std::memcpy(other, acc[2], sizeof other);
  for (int k = 0; k < L::kVectors; ++k) half[k] += other[k];
  return join_vectors<float>(half, Add());
}
template <int64_t kStep>
inline float sum_bf16(const uint16_t* p, int64_t apart, int64_t n) {
  return fold_vector<float>(bf16_lanes<kStep>(p, apart, n), Add());
}

// Sums: blocks of at most 64 terms per lane are added plainly, block sums with compensation.
template <class C>
struct SumRow {
  CompensatedSum<C> total;

  // Up to kWidth rows of less than a block, as add() folds each of them alone; row r lies at at(r).
  template <class At>
  static auto fold_rows(int rows, int64_t n, const At& at) {
    using L = Lanes<C>;
    if (n < L::kWidth && rows == L::kWidth) {  // a vector each, which never leaves the registers
      typename L::Vec v[L::kWidth];
#pragma GCC unroll 16
      for (int r = 0; r < L::kWidth; ++r) v[r] = L::load_first(at(r), n);
      return fold_vectors<C>(v, Add());
    }
    return fold_rows_of<C>(rows, [&](int r) { return lane_sums<C>(n, [](auto v) { return v; }, at(r)); }, Add());
  }
  // The same of rows of bf16 as they are stored, each as add_bf16() adds it.
  static constexpr bool folds_bf16(int64_t n) { return 2 * kBf16Group <= n && n <= 8 * kBf16Group; }
  template <class At>
  static auto fold_bf16(int rows, int64_t n, const At& at)
    requires std::is_same_v<C, float>
  {
    return fold_rows_of<C>(rows, [&](int r) { return bf16_lanes<kBf16Group>(at(r), kBf16Lanes, n); }, Add());
  }
  // bf16 values as they are stored; returns how many of the n were added, the first ones.
  int64_t add_bf16(const uint16_t* p, int64_t n)
    requires std::is_same_v<C, float>
  {
    constexpr int64_t kMost = 4 * kBf16Piece;
    if (n < 2 * kBf16Group) return 0;
    if (n <= kMost) return total.add(sum_bf16<kBf16Group>(p, kBf16Lanes, n)), n;
    const int64_t quarter = n / kMost * kBf16Piece;
    for (int64_t at = 0; at < quarter; at += kBf16Piece) total.add(sum_bf16<kBf16Lanes>(p + at, quarter, kBf16Piece));
    return 4 * quarter;
  }
  void add(const C* p, int64_t n) {
    constexpr int64_t kBlock = Lanes<C>::kBlock;
    if (n >= 16 * kBlock) {
      const int64_t quarter = n / (4 * kBlock) * kBlock;
      for (int64_t at = 0; at < quarter; at += kBlock) {
        C sums[4];
        sum_far_blocks(p + at, quarter, sums);
        for (const C sum : sums) total.add(sum);
      }
      p += 4 * quarter, n -= 4 * quarter;
    }
    for (; n > 0; n -= kBlock, p += kBlock) total.add(lane_sum<C>(std::min(n, kBlock), [](auto v) { return v; }, p));
  }
  // Sums of strips, less than a block.
  void merge(const C* p, int64_t n) { total.add(sum_plain(p, n)); }
  C state() const { return total.value(); }

 private:
  static C sum_plain(const C* p, int64_t n) {
    return lane_sum<C>(n, [](auto v) { return v; }, p);
  }
};

template <bool kMax, class C>
struct ExtremeRow {
  using X = Extreme<kMax, true>;
  C best = X::template start<C>();

  template <class At>
    requires(sizeof(C) >= 4)
  static auto fold_rows(int rows, int64_t n, const At& at) {
    typename Lanes<C>::Mask nan = {};
    auto folded =
        fold_rows_of<C>(rows, [&](int r) { return lane_extremes<kMax>(at(r), n, nan); }, TakeExtreme<kMax, false>());
    if (Lanes<C>::any(nan))
      for (int r = 0; r < rows; ++r) folded[r] = lane_extreme<kMax, true>(at(r), n);
    return folded;
  }
  void add(const C* p, int64_t n) {
    C v = lane_extreme<kMax, true>(p, n);
    best = X::takes(v, best) ? v : best;
  }
  void merge(const C* p, int64_t n) { add(p, n); }
  C state() const { return best; }
};

// Products: as many lanes as sums have, folded as a tree.
template <class C>
struct ProductRow {
  C total = 1;

  struct Join {
    template <class V>
    V operator()(const V& a, const V& b) const {
      return a * b;
    }
  };
  static auto lanes(const C* p, int64_t n) {
    using L = Lanes<C>;
    const typename L::Vec one = typename L::Vec{} + C(1);
    typename L::Vec acc[L::kVectors];
    for (auto& v : acc) v = one;
    int64_t i = 0;
    for (; i + L::kLanes <= n; i += L::kLanes) {
#pragma GCC unroll 16
      for (int k = 0; k < L::kVectors; ++k) acc[k] *= L::load(p + i + k * L::kWidth);
    }
    last_lanes<C>(n - i, [&](int k, int64_t at, int64_t left) __attribute__((always_inline)) {
      if (left >= L::kWidth)
        acc[k] *= L::load(p + i + at);
      else
        acc[k] *= L::first(left) ? L::load_first(p + i + at, left) : one;
    });
    return join_vectors<C>(acc, Join());
  }
  template <class At>
  static auto fold_rows(int rows, int64_t n, const At& at) {
    using L = Lanes<C>;
    if (n < L::kWidth && rows == L::kWidth) {
      const typename L::Vec one = typename L::Vec{} + C(1);
      typename L::Vec v[L::kWidth];
#pragma GCC unroll 16
      for (int r = 0; r < L::kWidth; ++r) v[r] = L::first(n) ? L::load_first(at(r), n) : one;
      return fold_vectors<C>(v, Join());
    }
    return fold_rows_of<C>(rows, [&](int r) { return lanes(at(r), n); }, Join());
  }
  void add(const C* p, int64_t n) { total *= fold_vector<C>(lanes(p, n), Join()); }
  void merge(const C* p, int64_t n) {
    for (int64_t i = 0; i < n; ++i) total *= p[i];
  }
  C state() const { return total; }
};

// What a word can count, or as much as any loop needs.
template <class W>
inline constexpr int64_t most_counted = sizeof(W) < 4 ? std::numeric_limits<W>::max() : int64_t{1} << 30;

// How many words are not zero. W: an unsigned integer.
template <class W>
struct CountRow {
  int64_t total = 0;

  void add(const W* p, int64_t n) {
    using L = Lanes<W>;
    constexpr int64_t kMost = std::min(most_counted<W>, int64_t{1024});
    while (n > kMost) {
      const int64_t vectors = std::min(kMost, n / L::kWidth);
      typename L::Vec found = {};
      for (int64_t i = 0; i < vectors; ++i) count(found, L::load(p + i * L::kWidth));
      W lanes[L::kWidth];
      std::memcpy(lanes, &found, sizeof lanes);
      for (const W lane : lanes) total += static_cast<int64_t>(lane);
      p += vectors * L::kWidth, n -= vectors * L::kWidth;
    }
    for (; n > 0; p += kMost, n -= kMost) total += static_cast<int64_t>(count_few(p, std::min(kMost, n)));
  }
  void merge(const int64_t* p, int64_t n) {
    for (int64_t i = 0; i < n; ++i) total += p[i];
  }
  int64_t state() const { return total; }

 private:
  template <class Vec>
  static void count(Vec& found, Vec x) {
    found -= Vec(x != 0);
  }
  // So few that their number is a W.
  static W count_few(const W* p, int64_t n) {
    using L = Lanes<W>;
    typename L::Vec found = {};
    int64_t i = 0;
    for (; i + L::kWidth <= n; i += L::kWidth) count(found, L::load(p + i));
    if (i < n) count(found, L::load_first(p + i, n - i));
    return fold_vector<W>(found, Add());
  }
};

}  // namespace baracuda::reduce
