// What the forward kernels of rows and of groups share: statistics of a row that is read in tiles, and its scaling.
#pragma once
#include <cmath>

#include "host/careful.h"
#include "ops/norm/kernels.h"

namespace baracuda::norm {

struct ForwardMaps {
  // A residual is added before the norm if the call has a sum, else behind it.
  RowMap x{}, residual{}, weight{}, bias{}, y{}, sum{}, mean{}, rstd{};
  double weight_offset = 0;
};

// A layer norm of which each row has one of several rows of weights and biases, in turn.
template <class C>
void forward_groups(const ForwardMaps& m, C eps, int64_t begin, int64_t end);

// Of the values times `scale`, a power of two.
template <class C>
struct Statistics {
  C mean, rstd, scale = 1;
};

// `tile(at, n)` gives the values of the row. Deviations are from the tile's own mean, which is then set against that of
// the tiles before it (Chan), so that a long row is read once.
template <bool kCenter, class C, class Tile>
Statistics<C> statistics(int64_t length, C eps, Tile&& tile) {
  CompensatedSum<C> total, squares;
  for (int64_t at = 0; at < length; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, length - at);
    const C* v = tile(at, n);
    if constexpr (kCenter) {
      const C before = at > 0 ? total.value() / static_cast<C>(at) : C(0);
      const C sum = lane_sum<C>(n, [](auto t) { return t; }, v), mean = sum / static_cast<C>(n);
      squares.add(lane_sum<C>(n, [mean](auto t) { return (t - mean) * (t - mean); }, v));
      if (at > 0)
        squares.add((mean - before) * (mean - before) *
                    (static_cast<C>(at) * (static_cast<C>(n) / static_cast<C>(at + n))));
      total.add(sum);
    } else {
      squares.add(lane_sum<C>(n, [](auto t) { return t * t; }, v));
    }
  }
  const C mean = kCenter ? total.value() / static_cast<C>(length) : C(0);
  return {mean, C(1) / std::sqrt(squares.value() / static_cast<C>(length) + eps)};
}

template <class C>
void scaled(const C* v, C scale, C* to, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = v[i] * scale;
}

// `s` of a row whose squares left the range of C, from values that are scaled near 1.
template <bool kCenter, class C, class Tile>
[[gnu::noinline]] Statistics<C> careful_statistics(int64_t length, C eps, Tile&& tile, const Statistics<C>& s) {
  C most = 0, copy[kRowTile<C>];
  for (int64_t at = 0; at < length; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, length - at);
    most = largest_size(most, tile(at, n), n);
  }
  const C scale = scale_of(most);
  if (scale == C(1)) return s;
  Statistics<C> found = statistics<kCenter>(length, eps * scale * scale, [&](int64_t at, int64_t n) {
    scaled(tile(at, n), scale, copy, n);
    return static_cast<const C*>(copy);
  });
  found.scale = scale;
  return found;
}

template <bool kCenter, class C>
[[gnu::always_inline]] inline void scale_tile(const C* v, const C* w, const C* b, Statistics<C> s, C* y, int64_t n) {
  auto loop = [&](auto value) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = value(i, (kCenter ? v[i] - s.mean : v[i]) * s.rstd);
  };
  if (w && b)
    loop([=](int64_t i, C t) { return t * w[i] + b[i]; });
  else if (w)
    loop([=](int64_t i, C t) { return t * w[i]; });
  else if (b)
    loop([=](int64_t i, C t) { return t + b[i]; });
  else
    loop([](int64_t, C t) { return t; });
}

}  // namespace baracuda::norm
