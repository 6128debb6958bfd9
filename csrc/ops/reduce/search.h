// The first position of the largest or smallest value; the first NaN wins.
#pragma once
#include "ops/reduce/columns.h"

namespace baracuda::reduce {

template <class V>
struct Found {
  V value;
  int64_t position;  // -1: of nothing
};

template <bool kMax, class V>
bool beats(V x, V best) {
  bool better = kMax ? x > best : x < best;
  if constexpr (std::is_floating_point_v<V>) better = better | ((x != x) & (best == best));
  return better;
}
// Of two sets of positions, none before or behind all of the other.
template <bool kMax, class V>
void keep_first(const Found<V>& next, Found<V>& best) {
  if (next.position < 0) return;
  const bool better = beats<kMax>(next.value, best.value), worse = beats<kMax>(best.value, next.value);
  if (best.position < 0 || better || (!worse && next.position < best.position)) best = next;
}

// Half `half` of two vectors of values that are read where they lie: of the compute type, or bf16, of which one half
// has the even ones and the other the odd ones.
template <class V>
auto load_wide(const V* p, int half) {
  return Lanes<V>::load(p + half * Lanes<V>::kWidth);
}
struct Bf16 {
  uint16_t bits;
};
inline Lanes<float>::Vec load_wide(const Bf16* p, int half) {
  typedef uint32_t Words __attribute__((vector_size(kVectorBytes)));
  Words pairs;
  std::memcpy(&pairs, p, sizeof pairs);
  return Lanes<float>::Vec(half == 0 ? pairs << 16 : pairs & 0xffff0000u);
}
template <class V>
V wide(V x) {
  return x;
}
inline float wide(Bf16 x) { return bf16_to_float(x.bits); }

// Whether one of a lane set of values at p equals `wanted`.
template <class V, class S>
bool has_value(const S* p, V wanted) {
  using L = Lanes<V>;
  auto found = load_wide(p, 0) == wanted;
#pragma GCC unroll 16
  for (int k = 1; k < L::kVectors; ++k) found |= load_wide(p + k / 2 * 2 * L::kWidth, k % 2) == wanted;
  return L::any(found);
}

// The first of n values that equals `wanted`; the first NaN where that is NaN. There is one.
template <class V, class S>
int64_t place_of(const S* v, int64_t n, V wanted) {
  constexpr int64_t kLanes = Lanes<V>::kLanes;
  int64_t j = 0;
  if (wanted != wanted) {
    while (wide(v[j]) == wide(v[j])) ++j;
    return j;
  }
  while (j + kLanes <= n && !has_value(v + j, wanted)) j += kLanes;
  while (wide(v[j]) != wanted) ++j;
  return j;
}

// Only blocks that have a new extremum are looked through for its place.
template <bool kMax, class V>
struct SearchRow {
  static constexpr bool kOrdered = true;
  Found<V> best{V(0), -1};
  int64_t at;  // the position of what comes next

  explicit SearchRow(int64_t first) : at(first) {}
  void add(const V* p, int64_t n) {
    constexpr int64_t kBlock = Lanes<V>::kBlock;
    for (; n > 0; p += kBlock, n -= kBlock) {
      const int64_t piece = std::min(n, kBlock);
      const V top = piece == kBlock ? block_extreme<kMax>(p) : lane_extreme<kMax, true>(p, piece);
      if (best.position < 0 || beats<kMax>(top, best.value)) best = {top, at + place_of(p, piece, top)};
      at += piece;
    }
  }
  void merge(const Found<V>* p, int64_t n) {
    for (int64_t i = 0; i < n; ++i) keep_first<kMax>(p[i], best);
  }
  Found<V> state() const { return best; }
};

// Places are counted from the start of a block of rows in integers as wide as the values, so that comparing and
// selecting is one loop of vectors.
template <bool kMax, class V>
struct SearchColumns {
  static constexpr bool kOrdered = true;
  static constexpr int64_t kTile = kColumnTile;
  using L = Lanes<V>;
  using Index = typename L::Index;
  static constexpr int64_t kMost = std::min<int64_t>(std::numeric_limits<Index>::max(), int64_t{1} << 30);
  V best[kTile];
  Index place[kTile];       // of the block's rows; -1: of none
  int64_t position[kTile];  // -1: of none
  Found<V> out[kTile];
  int64_t n, block, pending = 0;

  SearchColumns(int64_t columns, int64_t first) : n(columns), block(first) {
    std::fill_n(best, whole_vectors<V>(n), V(0));
    std::fill_n(place, whole_vectors<V>(n), Index(0));
    std::fill_n(position, n, -1);
  }
  void add(const V* r) { add_rows<1>({r}); }
  void add4(const V* a, const V* b, const V* c, const V* d) {
    if (!started_) return add(a), add(b), add(c), add(d);
    add_rows<4>({a, b, c, d});
  }
  // What was found at position p of others was at first + p * apart.
  void merge(const Found<V>* p, int64_t first = 0, int64_t apart = 1) {
    flush();
    for (int64_t j = 0; j < n; ++j) {
      Found<V> found{best[j], position[j]};
      keep_first<kMax>({p[j].value, p[j].position < 0 ? -1 : first + p[j].position * apart}, found);
      best[j] = found.value, position[j] = found.position;
    }
  }
  const Found<V>* finish() {
    flush();
    for (int64_t j = 0; j < n; ++j) out[j] = {best[j], position[j]};
    return out;
  }

 private:
  template <int kRows>
  void add_rows(const V* const (&rows)[kRows]) {
    if (!started_) {
      std::copy_n(rows[0], n, best);
      started_ = true, pending = 1;
      return;
    }
    if (pending + kRows > kMost) flush();
    int64_t j = 0;
    for (; j + L::kWidth <= n; j += L::kWidth)
      step<kRows>(j, [&](int k) __attribute__((always_inline)) { return L::load(rows[k] + j); });
    if (j < n) step<kRows>(j, [&](int k) __attribute__((always_inline)) { return L::load_first(rows[k] + j, n - j); });
    pending += kRows;
  }
  template <int kRows, class Row>
  [[gnu::always_inline]] void step(int64_t j, const Row& row) {
    typename L::Vec top = L::load(best + j);
    typename L::Mask at;
    std::memcpy(&at, place + j, sizeof at);
#pragma GCC unroll 4
    for (int k = 0; k < kRows; ++k) {
      const typename L::Vec x = row(k);
      auto better = kMax ? x > top : x < top;
      if constexpr (std::is_floating_point_v<V>) better |= (x != x) & (top == top);
      top = better ? x : top;
      at = better ? typename L::Mask{} + static_cast<Index>(pending + k) : at;
    }
    std::memcpy(best + j, &top, sizeof top);
    std::memcpy(place + j, &at, sizeof at);
  }
  void flush() {
    if (pending == 0) return;
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      position[j] = place[j] < 0 ? position[j] : block + place[j];
      place[j] = -1;
    }
    block += pending;
    pending = 0;
  }

  bool started_ = false;
};

template <bool kMax, class V>
struct SearchFold {
  static constexpr bool kExact = true;
  using State = Found<V>;
  using Row = SearchRow<kMax, V>;
  using Columns = SearchColumns<kMax, V>;
};

}  // namespace baracuda::reduce
