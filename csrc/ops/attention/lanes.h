// Small dense products with explicit lanes, shared by the attention kernels. Every element of a product is one chain of
// multiply-adds in the order of k, whatever the tile shape, so bits never depend on how rows and columns are grouped.
#pragma once
#include <cstdint>
#include <utility>

#include "host/level.h"

namespace baracuda::attention {

using level::kVectorBytes;
inline constexpr int kTileRows = level::kRegisters / 4;  // with 2 accumulators each: half of the registers

template <class C>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(C));

template <class C>
struct VectorOf {
  typedef C type __attribute__((vector_size(kVectorBytes)));
  typedef C unaligned __attribute__((vector_size(kVectorBytes), aligned(sizeof(C)), may_alias));
};
template <class C>
using Vector = typename VectorOf<C>::type;

template <class C>
[[gnu::always_inline]] inline Vector<C> load_lanes(const C* p) {
  return *reinterpret_cast<const typename VectorOf<C>::unaligned*>(p);
}
template <class C>
[[gnu::always_inline]] inline void store_lanes(C* p, Vector<C> v) {
  *reinterpret_cast<typename VectorOf<C>::unaligned*>(p) = v;
}

// How the left factor lies in memory: element (row, k) at a[row * lda + k], or at a[k * lda + row].
enum class Left { ByRow, ByColumn };

// Keys [first, last) of which lane i uses only those below at[i] and, with two ends, from start[i] on; the others are
// not touched at all, so that a NaN behind the causal diagonal stays there.
enum class Ends { None, Upper, Both };
template <class C>
struct Limits {
  int64_t last = 0;
  const C* at = nullptr;
  const C* start = nullptr;
};

// c[row][0 .. 2 lanes) (+)= sum over k of a(row, k) * b[k][0 .. 2 lanes) for kRows rows. The sum starts at zero, so
// that what is added to c in many calls is a sum of sums, which loses less.
template <class C, int kRows, Left kLeft, bool kAdd, Ends kEnds>
[[gnu::always_inline]] inline void product_tile(int64_t depth, const C* a, int64_t lda, const C* b, int64_t ldb, C* c,
                                                int64_t ldc, const Limits<C>& limits) {
  constexpr int kStep = kLanes<C>;
  Vector<C> sum[kRows][2] = {};
  const auto factor = [&](int r, int64_t k) { return kLeft == Left::ByRow ? a[r * lda + k] : a[k * lda + r]; };
  for (int64_t k = 0; k < depth; ++k) {
    const Vector<C> b0 = load_lanes(b + k * ldb), b1 = load_lanes(b + k * ldb + kStep);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const C x = factor(r, k);
      sum[r][0] += x * b0;
      sum[r][1] += x * b1;
    }
  }
  if constexpr (kEnds != Ends::None) {
    const Vector<C> limit0 = load_lanes(limits.at), limit1 = load_lanes(limits.at + kStep);
    for (int64_t k = depth; k < limits.last; ++k) {
      const Vector<C> b0 = load_lanes(b + k * ldb), b1 = load_lanes(b + k * ldb + kStep);
      auto use0 = limit0 > static_cast<C>(k), use1 = limit1 > static_cast<C>(k);
      if constexpr (kEnds == Ends::Both) {
        use0 &= load_lanes(limits.start) <= static_cast<C>(k);
        use1 &= load_lanes(limits.start + kStep) <= static_cast<C>(k);
      }
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const C x = factor(r, k);
        sum[r][0] = use0 ? sum[r][0] + x * b0 : sum[r][0];
        sum[r][1] = use1 ? sum[r][1] + x * b1 : sum[r][1];
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    C* to = c + r * ldc;
    store_lanes(to, kAdd ? load_lanes(to) + sum[r][0] : sum[r][0]);
    store_lanes(to + kStep, kAdd ? load_lanes(to + kStep) + sum[r][1] : sum[r][1]);
  }
}

// c[rows][columns] (+)= a[rows][depth] * b[depth][columns]; columns is a multiple of two vectors.
template <class C, Left kLeft, bool kAdd, Ends kEnds = Ends::None>
void product(int64_t rows, int64_t columns, int64_t depth, const C* a, int64_t lda, const C* b, int64_t ldb, C* c,
             int64_t ldc, Limits<C> limits = {}) {
  const int64_t row_step = kLeft == Left::ByRow ? lda : 1;
  for (int64_t n = 0; n < columns; n += 2 * kLanes<C>) {
    Limits<C> here = limits;
    if constexpr (kEnds != Ends::None) here.at += n;
    if constexpr (kEnds == Ends::Both) here.start += n;
    const auto tile = [&]<int kRows>(int64_t r) {
      product_tile<C, kRows, kLeft, kAdd, kEnds>(depth, a + r * row_step, lda, b + n, ldb, c + r * ldc + n, ldc, here);
    };
    int64_t r = 0;
    for (; r + kTileRows <= rows; r += kTileRows) tile.template operator()<kTileRows>(r);
    if (kTileRows > 4 && r + 4 <= rows) {
      tile.template operator()<4>(r);
      r += 4;
    }
    for (; r < rows; ++r) tile.template operator()<1>(r);
  }
}

// Of two dense rows, in lanes whose number does not depend on anything.
template <class C>
C dot(const C* a, const C* b, int64_t n) {
  constexpr int64_t kWide = 16;
  C sum[kWide] = {};
  int64_t i = 0;
  for (; i + kWide <= n; i += kWide)
    for (int64_t j = 0; j < kWide; ++j) sum[j] += a[i + j] * b[i + j];
  for (int64_t j = 0; i + j < n; ++j) sum[j] += a[i + j] * b[i + j];
  for (int64_t half = kWide / 2; half > 0; half /= 2)
    for (int64_t j = 0; j < half; ++j) sum[j] += sum[j + half];
  return sum[0];
}

// Lanes of a pair of vectors; __builtin_shufflevector takes only literal numbers of lanes.
template <class C>
struct Shuffles {
  using All = std::make_integer_sequence<int, kLanes<C>>;
  // Every second lane of the pair, from lane kFirst.
  template <int kFirst, int... i>
  [[gnu::always_inline]] static Vector<C> every_second(Vector<C> a, Vector<C> b, std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, b, (2 * i + kFirst)...);
  }
  // Lanes of a and b in turn, from the lower half (0) or the upper one (1).
  template <int kHalf, int... i>
  [[gnu::always_inline]] static Vector<C> interleave(Vector<C> a, Vector<C> b, std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, b, (kHalf * kLanes<C> / 2 + i / 2 + i % 2 * kLanes<C>)...);
  }
};

// Turns kLanes vectors into one whose lane i is the sum of v[i]'s lanes, always added in the same tree.
template <class C>
[[gnu::always_inline]] inline Vector<C> sum_each(Vector<C>* v) {
  using S = Shuffles<C>;
  using All = typename S::All;
#pragma GCC unroll 8
  for (int n = kLanes<C>; n > 1; n /= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < n / 2; ++i)
      v[i] = S::template every_second<0>(v[2 * i], v[2 * i + 1], All{}) +
             S::template every_second<1>(v[2 * i], v[2 * i + 1], All{});
  }
  return v[0];
}

// dst[j][i] = src[i][j] for a square of kLanes rows and columns.
template <class C>
inline void transpose_square(const C* src, int64_t lds, C* dst, int64_t ldd) {
  using S = Shuffles<C>;
  using All = typename S::All;
  constexpr int kN = kLanes<C>;
  Vector<C> v[kN], w[kN];
#pragma GCC unroll 16
  for (int i = 0; i < kN; ++i) v[i] = load_lanes(src + i * lds);
#pragma GCC unroll 4
  for (int round = kN; round > 1; round /= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < kN / 2; ++i) {
      w[2 * i] = S::template interleave<0>(v[i], v[i + kN / 2], All{});
      w[2 * i + 1] = S::template interleave<1>(v[i], v[i + kN / 2], All{});
    }
#pragma GCC unroll 16
    for (int i = 0; i < kN; ++i) v[i] = w[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kN; ++i) store_lanes(dst + i * ldd, v[i]);
}

// dst[columns][rows] = src[rows][columns] for any sizes.
template <class C>
void transpose(const C* src, int64_t lds, int64_t rows, int64_t columns, C* dst, int64_t ldd) {
  constexpr int64_t kN = kLanes<C>;
  const int64_t whole_rows = rows - rows % kN, whole_columns = columns - columns % kN;
  for (int64_t i = 0; i < whole_rows; i += kN)
    for (int64_t j = 0; j < whole_columns; j += kN) transpose_square(src + i * lds + j, lds, dst + j * ldd + i, ldd);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j) dst[j * ldd + i] = src[i * lds + j];
}

}  // namespace baracuda::attention
