// argmax, argmin, max and min along an axis: the first position of the largest or smallest value in logical order; the
// first NaN wins.
#include "core/compute.h"
#include "core/half.h"
#include "core/parallel.h"
#include "host/lanes.h"
#include "host/rows.h"
#include "ops/reduce/kernels.h"

namespace baracuda::reduce {
namespace {

template <class C>
struct Found {
  C value;
  int64_t position;
};

template <bool kMax, class C>
bool beats(C x, C best) {
  bool better = kMax ? x > best : x < best;
  if constexpr (std::is_floating_point_v<C>) better = better | ((x != x) & (best == best));
  return better;
}

// Where results go; either may be absent.
struct Results {
  RowMap values, positions;

  template <class C>
  void put_one(int64_t row, const Found<C>& found) const {
    if (values.present()) put<C>(values, row, found.value);
    if (positions.present()) put<int64_t>(positions, row, found.position);
  }
};

// Half `half` of two vectors of values that are read where they lie: of the compute type, or bf16, of which one half
// has the even ones and the other the odd ones.
template <class C>
typename Lanes<C>::Vec load_wide(const C* p, int half) {
  return Lanes<C>::load(p + half * Lanes<C>::kWidth);
}
inline Lanes<float>::Vec load_wide(const uint16_t* p, int half) {
  typedef uint32_t Words __attribute__((vector_size(kVectorBytes)));
  Words pairs;
  std::memcpy(&pairs, p, sizeof pairs);
  return Lanes<float>::Vec(half == 0 ? pairs << 16 : pairs & 0xffff0000u);
}
template <class C>
C wide(C x) {
  return x;
}
inline float wide(uint16_t x) { return bf16_to_float(x); }

// Whether one of a lane set of values at p equals `wanted`.
template <class C, class S>
bool has_value(const S* p, C wanted) {
  using L = Lanes<C>;
  auto found = load_wide(p, 0) == wanted;
#pragma GCC unroll 16
  for (int k = 1; k < L::kVectors; ++k) found |= load_wide(p + k / 2 * 2 * L::kWidth, k % 2) == wanted;
  return L::any(found);
}

// The first of n values that equals `wanted`; the first NaN where that is NaN. There is one.
template <class C, class S>
int64_t place_of(const S* v, int64_t n, C wanted) {
  constexpr int64_t kLanes = Lanes<C>::kLanes;
  int64_t j = 0;
  if (wanted != wanted) {
    while (wide(v[j]) == wide(v[j])) ++j;
    return j;
  }
  while (j + kLanes <= n && !has_value(v + j, wanted)) j += kLanes;
  while (wide(v[j]) != wanted) ++j;
  return j;
}

// Only the block that has the extremum is looked through for its place.
template <bool kMax, class C>
Found<C> search_row(const RowMap& x, const char* row, int64_t begin, int64_t end) {
  constexpr int64_t kBlock = Lanes<C>::kBlock;
  if (begin >= end) return {C(0), -1};
  C buffer[kBlock];
  const C* v = buffer;
  Found<C> best{C(0), -1};
  const bool direct = x.direct<C>();
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t n = std::min(kBlock, end - at);
    v = read(x, row, at, n, buffer);
    const C top = direct && n == kBlock ? block_extreme<kMax>(v) : lane_extreme<kMax, true>(v, n);
    if (best.position < 0 || beats<kMax>(top, best.value)) best = {top, at};
  }
  const int64_t n = std::min(kBlock, end - best.position);
  if (end - begin > kBlock) v = read(x, row, best.position, n, buffer);
  best.position += place_of(v, n, best.value);
  return best;
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
void search_streams(const RowMap& x, const Results& y, int64_t r, int64_t apart) {
  constexpr int64_t kBlock = Lanes<C>::kBlock;
  const int64_t length = x.length();
  const S* row[kStreams];
  Found<C> best[kStreams];
  for (int s = 0; s < kStreams; ++s) row[s] = reinterpret_cast<const S*>(x.row(r + s * apart)), best[s] = {C(0), -1};
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
    y.put_one(r + s * apart, best[s]);
  }
}
template <bool kMax, class C>
void search_streams(const RowMap& x, const Results& y, int64_t r, int64_t apart) {
  if constexpr (std::is_same_v<C, float>) {
    if (x.element == Element::BF16) return search_streams<kMax, C, uint16_t>(x, y, r, apart);
  }
  search_streams<kMax, C, C>(x, y, r, apart);
}

// Rows of a chunk of which each stream has its quarter: what one stream reads should be long.
int64_t stream_rows(const RowMap& x) {
  constexpr int64_t kStreamLength = int64_t{128} << 10;
  return kStreams * std::max<int64_t>(1, kStreamLength / std::max<int64_t>(1, x.length() * size_of(x.element)));
}

template <bool kMax, class C>
void search_rows(const RowMap& x, const Results& y, void* workspace) {
  const int64_t rows = x.rows(), length = x.length();
  const int64_t strips = strips_for(rows, length, 4096, rows * length), per = (length + strips - 1) / strips;
  auto* partial = static_cast<Found<C>*>(workspace);
  const bool stored = x.direct<C>() || (std::is_same_v<C, float> && x.element == Element::BF16 && x.inner.dense());
  const bool streams = strips == 1 && stored && length >= 256 && rows >= 8 * stream_rows(x);
  const int64_t grain = strips > 1 ? 1 : streams ? stream_rows(x) : row_grain(length);
  parallel_for(rows * strips, grain, [&](int64_t begin, int64_t end) {
    if (streams) {
      const int64_t apart = (end - begin) / kStreams, last = begin + apart;
      for (int64_t r = begin; r < last; ++r) search_streams<kMax, C>(x, y, r, apart);
      begin += kStreams * apart;
    }
    for (int64_t t = begin; t < end; ++t) {
      const int64_t from = std::min(length, t % strips * per);
      const Found<C> found = search_row<kMax, C>(x, x.row(t / strips), from, std::min(length, from + per));
      if (strips == 1)
        y.put_one(t, found);
      else
        partial[t] = found;
    }
  });
  for (int64_t r = 0; strips > 1 && r < rows; ++r) {
    Found<C> best = partial[r * strips];
    for (int64_t s = 1; s < strips; ++s) {
      const Found<C>& next = partial[r * strips + s];
      if (next.position >= 0 && beats<kMax>(next.value, best.value)) best = next;
    }
    y.put_one(r, best);
  }
}

template <bool kMax, class C>
struct SearchColumns {
  // As wide as the values, so that comparing and selecting is one vector loop.
  using Index = std::conditional_t<sizeof(C) == 4, int32_t, int64_t>;
  C best[kColumnTile];
  Index position[kColumnTile];
  int64_t n;

  void start(const C* v, int64_t at) {
    for (int64_t j = 0; j < n; ++j) best[j] = v[j], position[j] = static_cast<Index>(at);
  }
  void add(const C* v, int64_t at) {
    const Index row = static_cast<Index>(at);
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      bool better = beats<kMax>(v[j], best[j]);
      best[j] = better ? v[j] : best[j];
      position[j] = better ? row : position[j];
    }
  }
};

template <bool kMax, class C>
void search_columns(const RowMap& x, const Results& y, void* workspace) {
  const int last = x.outer.rank - 1;
  const int64_t width = x.outer.shape[last], stride = x.outer.strides[last], outputs = x.rows(), length = x.length();
  const int64_t tiles = (width + kColumnTile - 1) / kColumnTile, tasks = outputs / width * tiles;
  const int64_t strips = strips_for(tasks, length, 64, outputs * length), per = (length + strips - 1) / strips;
  auto* partial = static_cast<Found<C>*>(workspace);
  const int64_t grain = strips > 1 ? 1 : row_grain(std::min(width, kColumnTile) * length);
  const bool plain = x.element == element_of<C> && stride == 1;
  parallel_for(tasks * strips, grain, [&](int64_t begin, int64_t end) {
    SearchColumns<kMax, C> columns;
    C buffer[kColumnTile];
    for (int64_t t = begin; t < end; ++t) {
      const int64_t task = t / strips, strip = t % strips, column = task % tiles * kColumnTile;
      const int64_t output = task / tiles * width + column, first = std::min(length, strip * per);
      columns.n = std::min(kColumnTile, width - column);
      const char* base = x.row(output);
      for (int64_t r = first; r < std::min(length, first + per); ++r) {
        const char* p = base + x.inner.offset(r) * size_of(x.element);
        const C* v = reinterpret_cast<const C*>(p);
        if (!plain) load<C>(x.element, p, stride, buffer, columns.n), v = buffer;
        r == first ? columns.start(v, r) : columns.add(v, r);
      }
      for (int64_t j = 0; j < columns.n; ++j) {
        if (strips == 1)
          y.put_one(output + j, Found<C>{columns.best[j], columns.position[j]});
        else
          partial[strip * outputs + output + j] = {columns.best[j], first < length ? columns.position[j] : -1};
      }
    }
  });
  for (int64_t o = 0; strips > 1 && o < outputs; ++o) {
    Found<C> best = partial[o];
    for (int64_t s = 1; s < strips; ++s) {
      const Found<C>& next = partial[s * outputs + o];
      if (next.position >= 0 && beats<kMax>(next.value, best.value)) best = next;
    }
    y.put_one(o, best);
  }
}

template <bool kMax, class C>
void search(const RowMap& x, const Results& y, void* workspace) {
  const int last = x.outer.rank - 1;
  const bool denser = last >= 0 && x.inner.rank == 1 && x.outer.shape[last] >= 8 &&
                      std::abs(x.outer.strides[last]) < std::abs(x.inner.strides[0]) &&
                      x.length() <= std::numeric_limits<int32_t>::max();
  denser ? search_columns<kMax, C>(x, y, workspace) : search_rows<kMax, C>(x, y, workspace);
}

template <bool kMax>
Status search_any(const Launch& launch, const TensorView& x, const TensorView* values, const TensorView& positions) {
  const int64_t axis = attributes<ArgReduceAttrs>(launch).axis;
  const uint32_t mask = axis < 0 ? (1u << x.rank) - 1u : 1u << axis;
  const uint32_t folded = positions.rank == x.rank ? mask : 0;
  const RowMap in = row_map(x, mask);
  const Results out{values ? row_map(*values, folded) : RowMap{}, row_map(positions, folded)};
  if (in.rows() == 0) return Status::Ok;
  if (in.length() == 0) return Status::InvalidProblem;
  with_compute_type(x.element, [&](auto c) { search<kMax, decltype(c)>(in, out, launch.workspace); });
  return Status::Ok;
}

}  // namespace
}  // namespace baracuda::reduce

namespace baracuda {

template <bool kMax>
Status CpuKernel<reduce::ArgExtremum<kMax>>::run(const Launch& launch) {
  using Args = reduce::ReduceArgs;
  return reduce::search_any<kMax>(launch, launch[Args::x], nullptr, launch[Args::y]);
}
template struct CpuKernel<reduce::ArgExtremum<true>>;
template struct CpuKernel<reduce::ArgExtremum<false>>;

template <bool kMax>
Status CpuKernel<reduce::IndexedExtremum<kMax>>::run(const Launch& launch) {
  using Args = reduce::IndexedArgs;
  return reduce::search_any<kMax>(launch, launch[Args::x], &launch[Args::values], launch[Args::indices]);
}
template struct CpuKernel<reduce::IndexedExtremum<true>>;
template struct CpuKernel<reduce::IndexedExtremum<false>>;

}  // namespace baracuda
