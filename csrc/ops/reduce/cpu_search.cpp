// argmax, argmin, max and min along an axis: the first position of the largest or smallest value in logical order; the
// first NaN wins.
#include "ops/reduce/driver.h"
#include "ops/reduce/search.h"

namespace baracuda::reduce {
namespace {

// Results 0 and 1 are values and positions; either may be absent.
template <class V>
void put_found(const Walk& w, int64_t first, int64_t n, const Found<V>* found, const void*) {
  constexpr int64_t kPiece = 256;
  V values[kPiece];
  int64_t positions[kPiece];
  for (int64_t i = 0; i < n; i += kPiece, found += kPiece) {
    const int64_t piece = std::min(kPiece, n - i);
    for (int64_t j = 0; j < piece; ++j) values[j] = found[j].value, positions[j] = found[j].position;
    if (w.out[0]) put_values<V>(w, 0, first + i, piece, values);
    if (w.out[1]) put_values<int64_t>(w, 1, first + i, piece, positions);
  }
}

// Rows read at the same time, far apart: memory serves a few long streams a third faster than one.
constexpr int kStreams = 4;

// The extrema of n values at each of the places; NaN wins. Without kKeepNan a loop of half the operations: false where
// it may have met a NaN, which a sum of values cannot hide.
template <bool kMax, bool kKeepNan, class C, class S>
bool extrema_of_streams(const S* const (&p)[kStreams], int64_t n, C (&top)[kStreams]) {
  using L = Lanes<C>;
  using Vec = typename L::Vec;
  using X = Extreme<kMax, kKeepNan>;
  constexpr int kAccs = 2, kStep = kAccs * L::kWidth;
  C lane[kStreams][kStep];
  for (auto& row : lane)
    for (C& v : row) v = X::template start<C>();
  Vec acc[kStreams][kAccs];
  std::memcpy(acc, lane, sizeof acc);
  decltype(acc[0][0] != acc[0][0]) odd = {};
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    Vec mixed = {};
#pragma GCC unroll 8
    for (int k = 0; k < kStreams * kAccs; ++k) {
      const Vec x = load_wide(p[k / kAccs] + i, k % kAccs);
      Vec& best = acc[k / kAccs][k % kAccs];
      best = X::takes(x, best) ? x : best;
      if constexpr (!kKeepNan) mixed += x;
    }
    odd |= mixed != mixed;
  }
  std::memcpy(lane, acc, sizeof lane);
  for (int s = 0; s < kStreams; ++s) {
    top[s] = lane_extreme<kMax, true>(lane[s], kStep);
    for (int64_t j = i; j < n; ++j) top[s] = Extreme<kMax, true>::takes(wide(p[s][j]), top[s]) ? wide(p[s][j]) : top[s];
  }
  return !L::any(odd);
}

// Rows r, r + apart, r + 2 apart, ... of values that are stored as S.
template <bool kMax, class C, class S>
void search_streams(const Walk& w, int64_t r, int64_t apart) {
  constexpr int64_t kBlock = Lanes<C>::kBlock;
  const int64_t length = w.length;
  const S* row[kStreams];
  Found<C> best[kStreams];
  for (int s = 0; s < kStreams; ++s) row[s] = reinterpret_cast<const S*>(w.from(r + s * apart)), best[s] = {C(0), -1};
  for (int64_t at = 0; at < length; at += kBlock) {
    const S* p[kStreams];
    C top[kStreams];
    for (int s = 0; s < kStreams; ++s) p[s] = row[s] + at;
    const int64_t n = std::min(kBlock, length - at);
    if (!extrema_of_streams<kMax, false>(p, n, top)) extrema_of_streams<kMax, true>(p, n, top);
    for (int s = 0; s < kStreams; ++s)
      if (best[s].position < 0 || beats<kMax>(top[s], best[s].value)) best[s] = {top[s], at};
  }
  for (int s = 0; s < kStreams; ++s) {
    const int64_t at = best[s].position;
    best[s].position += place_of(row[s] + at, std::min(kBlock, length - at), best[s].value);
    put_found<C>(w, r + s * apart, 1, &best[s], nullptr);
  }
}
template <bool kMax, class C>
void search_streams(const Walk& w, int64_t r, int64_t apart) {
  if constexpr (std::is_same_v<C, float>) {
    if (w.in_element == Element::BF16) return search_streams<kMax, C, Bf16>(w, r, apart);
  }
  search_streams<kMax, C, C>(w, r, apart);
}

// Rows of a chunk of which each stream has its quarter: what one stream reads should be long.
int64_t stream_rows(const Walk& w) {
  constexpr int64_t kStreamLength = int64_t{128} << 10;
  return kStreams * std::max<int64_t>(1, kStreamLength / std::max<int64_t>(1, w.length * size_of(w.in_element)));
}

template <class V>
void put_values_alone(const Walk& w, int64_t first, int64_t n, const V* values, const void*) {
  put_values<V>(w, 0, first, n, values);
}
// Where there is nothing to choose from.
template <bool kMax, class V>
void take_first(const Walk& w, void* workspace) {
  if (w.out[0]) fold_extreme<kMax, V>(w, {}, workspace, {&put_values_alone<V>});
  if (!w.out[1]) return;
  parallel_for(w.outputs, kParallelGrain, [&](int64_t begin, int64_t end) {
    const int64_t zeros[kColumnTile] = {};
    for (int64_t o = begin; o < end; o += kColumnTile)
      put_values<int64_t>(w, 1, o, std::min(kColumnTile, end - o), zeros);
  });
}

template <bool kMax, class V>
void search(const Walk& w, void* workspace) {
  if (w.length == 1) return take_first<kMax, V>(w, workspace);
  const bool stored = w.in_element == element_of<V> || (std::is_same_v<V, float> && w.in_element == Element::BF16);
  if constexpr (std::is_floating_point_v<V>) {
    if (stored && w.folded.dense() && w.length >= 256 && w.outputs >= 8 * stream_rows(w)) {
      parallel_for(w.outputs, stream_rows(w), [&](int64_t begin, int64_t end) {
        const int64_t apart = (end - begin) / kStreams, last = begin + apart;
        for (int64_t r = begin; r < last; ++r) search_streams<kMax, V>(w, r, apart);
        for (int64_t r = begin + kStreams * apart; r < end; ++r) {
          SearchRow<kMax, V> row(0);
          fold_range<V>(w, {}, w.from(r), 0, w.length, row);
          const Found<V> found = row.state();
          put_found<V>(w, r, 1, &found, nullptr);
        }
      });
      return;
    }
  }
  fold<V, SearchFold<kMax, V>>(w, {}, workspace, {&put_found<V>});
}

// Values and positions; the values may be absent.
template <bool kMax>
Status search_any(const Launch& launch, const TensorView& x, const TensorView& values, const TensorView& positions) {
  const int64_t axis = attributes<ArgReduceAttrs>(launch).axis;
  const uint32_t axes = axis < 0 ? (1u << x.rank) - 1u : 1u << axis;
  const Walk w(x, values, axes, true, &positions, true);
  if (w.outputs == 0) return Status::Ok;
  if (w.length == 0) return Status::InvalidProblem;
  with_stored_type(x.element, [&](auto v) { search<kMax, decltype(v)>(w, launch.workspace); });
  return Status::Ok;
}

}  // namespace
}  // namespace baracuda::reduce

namespace baracuda {

template <bool kMax>
Status CpuKernel<reduce::ArgExtremum<kMax>>::run(const Launch& launch) {
  using Args = reduce::ReduceArgs;
  TensorView none;
  none.rank = -1;
  return reduce::search_any<kMax>(launch, launch[Args::x], none, launch[Args::y]);
}
template struct CpuKernel<reduce::ArgExtremum<true>>;
template struct CpuKernel<reduce::ArgExtremum<false>>;

template <bool kMax>
Status CpuKernel<reduce::IndexedExtremum<kMax>>::run(const Launch& launch) {
  using Args = reduce::IndexedArgs;
  return reduce::search_any<kMax>(launch, launch[Args::x], launch[Args::values], launch[Args::indices]);
}
template struct CpuKernel<reduce::IndexedExtremum<true>>;
template struct CpuKernel<reduce::IndexedExtremum<false>>;

}  // namespace baracuda
