// Norms over trailing dimensions, backward:
//   dx = rstd (g - mean(g) - xhat mean(g xhat)) with g = dy weight and xhat = (x - mean) rstd; rms norms have no mean
//   terms. dweight = sum over rows of dy xhat, dbias of dy: per strip of rows in the workspace, then over the strips,
//   in order.
#include "host/row_writer.h"
#include "host/strip_sums.h"
#include "ops/norm/kernels.h"

namespace baracuda::norm {
namespace {

struct BackwardMaps {
  RowMap dy{}, dsum{}, x{}, weight{}, mean{}, rstd{}, dx{}, dweight{}, dbias{};
  double weight_offset = 0;
};

template <class C>
struct Row {
  C mean, rstd;
};

template <class C>
struct Sums {
  CompensatedSum<C> g_xhat, g;
};

// One tile's share of sum(g xhat) and sum(g), and of the gradients of weight and bias.
template <bool kCenter, class C>
void gather_tile(const C* d, const C* v, const C* w, Row<C> row, Sums<C>& sums, C* dweight, C* dbias, int64_t n) {
  // Before anything is multiplied by them, values are scaled to the size of 1, whose products stay within range.
  const C mean = kCenter ? row.mean : C(0), rstd = row.rstd;
  auto xhat = [=](auto x) {
    if constexpr (kCenter)
      return (x - mean) * rstd;
    else
      return x * rstd;
  };
  if (w) {
    sums.g_xhat.add(lane_sum<C>(n, [&](auto a, auto x, auto b) { return a * b * xhat(x); }, d, v, w));
    if (kCenter) sums.g.add(lane_sum<C>(n, [](auto a, auto b) { return a * b; }, d, w));
  } else {
    sums.g_xhat.add(lane_sum<C>(n, [&](auto a, auto x) { return a * xhat(x); }, d, v));
    if (kCenter) sums.g.add(lane_sum<C>(n, [](auto a) { return a; }, d));
  }
  if (dweight) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) dweight[i] += d[i] * xhat(v[i]);
  }
  if (dbias) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) dbias[i] += d[i];
  }
}

template <bool kCenter, class C>
void spread_tile(const C* d, const C* v, const C* w, const C* add, Row<C> row, C g_mean, C slope, C* dx, int64_t n) {
  auto loop = [&](auto weight, auto more) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const C g = kCenter ? d[i] * weight(i) - g_mean : d[i] * weight(i);
      const C xhat = (kCenter ? v[i] - row.mean : v[i]) * row.rstd;
      dx[i] = (g - xhat * slope) * row.rstd + more(i);
    }
  };
  auto one = [](int64_t) { return C(1); };
  auto none = [](int64_t) { return C(0); };
  auto weight = [w](int64_t i) { return w[i]; };
  auto more = [add](int64_t i) { return add[i]; };
  if (w)
    add ? loop(weight, more) : loop(weight, none);
  else
    add ? loop(one, more) : loop(one, none);
}

template <bool kCenter, class C>
void backward_rows(const BackwardMaps& m, int64_t begin, int64_t end, Partial<C> dweight, Partial<C> dbias) {
  C grad[kRowTile<C>], in[kRowTile<C>], weight[kRowTile<C>], more[kRowTile<C>];
  const int64_t length = m.x.length();
  const bool whole = length <= kRowTile<C>;
  const C *d = nullptr, *v = nullptr, *w = nullptr, *add = nullptr;
  const C offset = static_cast<C>(m.weight_offset);
  if (m.weight.present() && whole) w = read_weight(m.weight, offset, 0, length, weight);
  const RowWriter<C> writer(m.dx, m.dx.data == m.dy.data || m.dx.data == m.x.data);
  for (int64_t r = begin; r < end; ++r) {
    const char *from_d = m.dy.row(r), *from_x = m.x.row(r), *from_add = m.dsum.present() ? m.dsum.row(r) : nullptr;
    char* to = m.dx.row(r);
    auto fetch = [&](int64_t at, int64_t n) {
      d = read(m.dy, from_d, at, n, grad);
      v = read(m.x, from_x, at, n, in);
      if (m.weight.present() && !whole) w = read_weight(m.weight, offset, at, n, weight);
    };
    const Row<C> row{kCenter ? get<C>(m.mean, r) : C(0), get<C>(m.rstd, r)};
    Sums<C> sums;
    for (int64_t at = 0; at < length; at += kRowTile<C>) {
      const int64_t n = std::min(kRowTile<C>, length - at);
      fetch(at, n);
      gather_tile<kCenter>(d, v, w, row, sums, dweight.present() ? dweight.block + at : nullptr,
                           dbias.present() ? dbias.block + at : nullptr, n);
    }
    const C count = static_cast<C>(length), g_mean = sums.g.value() / count;
    const C slope = sums.g_xhat.value() / count;
    for (int64_t at = 0; at < length; at += kRowTile<C>) {
      const int64_t n = std::min(kRowTile<C>, length - at);
      if (!whole) fetch(at, n);
      if (from_add) add = read(m.dsum, from_add, at, n, more);
      writer.put(
          to, at, n,
          [&](int64_t i, int64_t piece, C* dx) {
            spread_tile<kCenter>(d + i, v + i, w ? w + i : w, add ? add + i : add, row, g_mean, slope, dx, piece);
          },
          Ahead(m.dy, r + 1, end, at), Ahead(m.x, r + 1, end, at));
    }
    if ((r - begin) % kStripBlock == kStripBlock - 1 || r == end - 1) dweight.flush(length), dbias.flush(length);
  }
}

template <bool kCenter, class C>
void backward(const BackwardMaps& m, void* workspace) {
  const int64_t rows = m.x.rows(), length = m.x.length(), strips = strips_of(rows);
  const int64_t gradients = m.dweight.present() + m.dbias.present(), step = 2 * length * gradients;
  C* partial = static_cast<C*>(workspace);
  if (gradients == 0) {
    parallel_for(rows, row_grain(length),
                 [&](int64_t begin, int64_t end) { backward_rows<kCenter, C>(m, begin, end, {}, {}); });
    return;
  }
  const int64_t per = strips ? (rows + strips - 1) / strips : 0;
  parallel_for(strips, row_grain(per * length), [&](int64_t first, int64_t last) {
    for (int64_t s = first; s < last; ++s) {
      C* own = partial + s * step;
      for (int64_t i = 0; i < step; ++i) own[i] = 0;
      Partial<C> dweight, dbias;
      if (m.dweight.present()) dweight = {own, own + length}, own += 2 * length;
      if (m.dbias.present()) dbias = {own, own + length};
      backward_rows<kCenter, C>(m, std::min(rows, s * per), std::min(rows, (s + 1) * per), dweight, dbias);
    }
  });
  if (m.dweight.present()) finish_strips(m.dweight, partial + length, step, strips, length);
  if (m.dbias.present()) finish_strips(m.dbias, partial + step - length, step, strips, length);
}

// Of the norm whose arguments Args are; `x` is what was normalised.
template <class Args, bool kCenter = false>
Status run_backward(const Launch& launch, const TensorView& x) {
  const Masks k(launch, x);
  BackwardMaps m{.dy = row_map(launch[Args::dy], k.row),
                 .x = row_map(x, k.row),
                 .weight = row_map(launch[Args::weight], k.all),
                 .rstd = k.statistic(launch[Args::rstd]),
                 .dx = row_map(launch[Args::dx], k.row),
                 .dweight = row_map(launch[Args::dweight], k.all),
                 .weight_offset = attributes<NormAttrs>(launch).weight_offset};
  if constexpr (requires { Args::dsum; }) m.dsum = row_map(launch[Args::dsum], k.row);
  if constexpr (kCenter) {
    m.mean = k.statistic(launch[Args::mean]);
    m.dbias = row_map(launch[Args::dbias], k.all);
  }
  launch.element == Element::F64 ? backward<kCenter, double>(m, launch.workspace)
                                 : backward<kCenter, float>(m, launch.workspace);
  return Status::Ok;
}

}  // namespace
}  // namespace baracuda::norm

namespace baracuda {

template <>
Status CpuKernel<norm::Backward<norm::RmsNorm>>::run(const Launch& launch) {
  using Args = norm::RmsNormBackwardArgs;
  return norm::run_backward<Args>(launch, launch[Args::x]);
}
template <>
Status CpuKernel<norm::Backward<norm::AddRmsNorm>>::run(const Launch& launch) {
  using Args = norm::AddRmsNormBackwardArgs;
  return norm::run_backward<Args>(launch, launch[Args::sum]);
}
template <>
Status CpuKernel<norm::Backward<norm::LayerNorm>>::run(const Launch& launch) {
  using Args = norm::LayerNormBackwardArgs;
  return norm::run_backward<Args, true>(launch, launch[Args::x]);
}

}  // namespace baracuda
