// What the forward kernels of rows and of groups share: statistics of a row that is read in tiles, and its scaling.
#pragma once
#include <cmath>

#include "host/careful.h"
#include "host/row_writer.h"
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

// Writes rows of values; quant::CodeWriter stands in its place where their codes are wanted.
template <class C>
class ValueWriter {
 public:
  ValueWriter(const RowMap& y, bool in_place) : y_(y), writer_(y, in_place) {}
  int passes() const { return 1; }
  void begin(int64_t row) { to_ = y_.row(row); }
  template <class Piece, class... A>
  void put(int, int64_t at, int64_t n, Piece&& piece, const A&... ahead) const {
    writer_.put(to_, at, n, piece, ahead...);
  }

 private:
  const RowMap& y_;
  const RowWriter<C> writer_;
  char* to_ = nullptr;
};

template <bool kCenter, class C, class Writer>
void forward_rows(const ForwardMaps& m, C eps, int64_t begin, int64_t end, Writer& writer) {
  C in[kRowTile<C>], out[kRowTile<C>], weight[kRowTile<C>], bias[kRowTile<C>];
  const int64_t length = m.x.length();
  const bool whole = length <= kRowTile<C>;
  const C *w = nullptr, *b = nullptr;
  auto parameters = [&](int64_t at, int64_t n) {
    if (m.weight.present()) w = read_weight(m.weight, static_cast<C>(m.weight_offset), at, n, weight);
    if (m.bias.present()) b = read(m.bias, m.bias.data, at, n, bias);
  };
  if (whole) parameters(0, length);
  // What is normalised: x, or for add_rms_norm the sum as it was stored.
  const RowMap& source = m.sum.present() ? m.sum : m.x;
  const bool before = m.sum.present(), behind = m.residual.present() && !before;
  for (int64_t r = begin; r < end; ++r) {
    if (before) add_row<C>(m.x, m.residual, m.sum, r, in, out);
    const char* from = source.row(r);
    const char* more = behind ? m.residual.row(r) : nullptr;
    const C* v = whole ? read(source, from, 0, length, in) : nullptr;
    auto tile = [&](int64_t at, int64_t n) { return whole ? v : read(source, from, at, n, in); };
    Statistics<C> s = statistics<kCenter>(length, eps, tile);
    if (squares_lost_by(s.rstd)) s = careful_statistics<kCenter>(length, eps, tile, s);
    writer.begin(r);
    for (int pass = 0; pass < writer.passes(); ++pass) {
      for (int64_t at = 0; at < length; at += kRowTile<C>) {
        const int64_t n = std::min(kRowTile<C>, length - at);
        if (!whole) parameters(at, n);
        if (behind) b = read(m.residual, more, at, n, bias);
        const C* values = tile(at, n);
        if (s.scale != C(1)) scaled(values, s.scale, out, n), values = out;
        writer.put(
            pass, at, n,
            [&](int64_t i, int64_t count, C* y) {
              scale_tile<kCenter>(values + i, w ? w + i : w, b ? b + i : b, s, y, count);
            },
            Ahead(m.x, r + 1, end, at), Ahead(m.residual, r + 1, end, at));
      }
    }
    if (m.mean.present()) put(m.mean, r, s.mean / s.scale);
    if (m.rstd.present()) put(m.rstd, r, s.rstd * s.scale);
  }
}

}  // namespace baracuda::norm
