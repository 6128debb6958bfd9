// Norms over trailing dimensions, forward. A row that fits a tile is read once; a longer one again for each pass.
#include "core/parallel.h"
#include "host/short_rows.h"
#include "ops/norm/cpu_forward.h"

namespace baracuda::norm {
namespace {

// The statistics of `rows` rows, one behind the other.
template <bool kCenter, class C>
void short_statistics(const C* v, int rows, int64_t n, C eps, C* mean, C* rstd) {
  using L = Lanes<C>;
  typename L::Vec total = {};
  const C share = static_cast<C>(n);
  if constexpr (kCenter) {
    total = fold_rows_of<C>(rows, [&](int k) { return lane_sums<C>(n, [](auto t) { return t; }, v + k * n); }, Add());
    total /= share;
  }
  const auto squares = fold_rows_of<C>(
      rows,
      [&](int k) {
        const C middle = total[k];
        if constexpr (kCenter)
          return lane_sums<C>(n, [middle](auto t) { return (t - middle) * (t - middle); }, v + k * n);
        return lane_sums<C>(n, [](auto t) { return t * t; }, v + k * n);
      },
      Add());
  for (int k = 0; k < L::kWidth; ++k) mean[k] = total[k], rstd[k] = C(1) / std::sqrt(squares[k] / share + eps);
}

// One of rows of which some have lost their squares.
template <bool kCenter, class C>
[[gnu::noinline]] void careful_row(const C* v, const C* w, const C* b, C eps, C& mean, C& rstd, C* y, int64_t n) {
  C copy[kShortRow];
  Statistics<C> s{mean, rstd};
  if (squares_lost_by(rstd)) {
    s = careful_statistics<kCenter>(n, eps, [v](int64_t, int64_t) { return v; }, s);
    mean = s.mean / s.scale, rstd = s.rstd * s.scale;
    scaled(v, s.scale, copy, n);
    v = copy;
  }
  scale_tile<kCenter>(v, w, b, s, y, n);
}

template <bool kCenter, class C>
void forward_short(const ForwardMaps& m, C eps, int64_t begin, int64_t end) {
  using L = Lanes<C>;
  using Rows = ShortRows<C>;
  const bool before = m.sum.present(), behind = m.residual.present() && !before;
  const Rows from(before ? m.sum : m.x), to(m.y, m.y.data == m.x.data || m.y.data == m.residual.data);
  const Rows residual(m.residual);
  typename Rows::Block in, more, out;
  C weight[kShortRow], bias[kShortRow], mean[L::kWidth], rstd[L::kWidth];
  const int64_t n = m.x.length();
  const C *w = nullptr, *b = nullptr;
  if (m.weight.present()) w = read_weight(m.weight, static_cast<C>(m.weight_offset), 0, n, weight);
  if (m.bias.present()) b = read(m.bias, m.bias.data, 0, n, bias);
  for (int64_t r = begin; r < end; r += L::kWidth) {
    const int rows = static_cast<int>(std::min<int64_t>(L::kWidth, end - r));
    for (int k = 0; before && k < rows; ++k) add_row<C>(m.x, m.residual, m.sum, r + k, in.values, out.values);
    const C *v = from.read(r, rows, in), *added = behind ? residual.read(r, rows, more) : nullptr;
    C* target = to.target(r, out);
    short_statistics<kCenter>(v, rows, n, eps, mean, rstd);
    int32_t lost = 0;
    for (int k = 0; k < rows; ++k) lost |= squares_lost_by(rstd[k]);
    if (!lost) {
      for (int k = 0; k < rows; ++k)
        scale_tile<kCenter>(v + k * n, w, added ? added + k * n : b, Statistics<C>{mean[k], rstd[k]}, target + k * n,
                            n);
    } else {
      for (int k = 0; k < rows; ++k)
        careful_row<kCenter>(v + k * n, w, added ? added + k * n : b, eps, mean[k], rstd[k], target + k * n, n);
    }
    to.write(r, rows, target);
    if (m.mean.present()) put_rows(m.mean, r, rows, mean);
    if (m.rstd.present()) put_rows(m.rstd, r, rows, rstd);
  }
}

template <bool kCenter, class C>
void forward(const ForwardMaps& m, double eps) {
  if (m.x.rows() == 0) return;
  if (kCenter && ((m.weight.present() && m.weight.rows() > 1) || (m.bias.present() && m.bias.rows() > 1)))
    return parallel_for(m.x.rows(), row_grain(m.x.length()),
                        [&](int64_t begin, int64_t end) { forward_groups(m, static_cast<C>(eps), begin, end); });
  const bool brief = is_short(m.x) && is_short(m.y) && (!m.sum.present() || is_short(m.sum)) &&
                     (!m.residual.present() || is_short(m.residual));
  parallel_for(m.x.rows(), row_grain(m.x.length()), [&](int64_t begin, int64_t end) {
    if (brief) return forward_short<kCenter>(m, static_cast<C>(eps), begin, end);
    ValueWriter<C> writer(m.y, m.y.data == m.x.data || m.y.data == m.residual.data);
    forward_rows<kCenter>(m, static_cast<C>(eps), begin, end, writer);
  });
}

template <bool kCenter>
Status forward_any(const Launch& launch, ForwardMaps m, const Scalar& given) {
  const double eps = given.as_f64();
  m.weight_offset = attributes<NormAttrs>(launch).weight_offset;
  launch.element == Element::F64 ? forward<kCenter, double>(m, eps) : forward<kCenter, float>(m, eps);
  return Status::Ok;
}

}  // namespace
}  // namespace baracuda::norm

namespace baracuda {

template <>
struct CpuKernel<norm::RmsNorm> {
  static Status run(const Launch& launch) {
    using Args = norm::RmsNormArgs;
    const norm::Masks k(launch, launch[Args::x]);
    const norm::ForwardMaps m{.x = row_map(launch[Args::x], k.row),
                              .weight = row_map(launch[Args::weight], k.all),
                              .y = row_map(launch[Args::y], k.row),
                              .rstd = k.statistic(launch[Args::rstd])};
    return norm::forward_any<false>(launch, m, launch.scalars[Args::eps]);
  }
};

template <>
struct CpuKernel<norm::AddRmsNorm> {
  static Status run(const Launch& launch) {
    using Args = norm::AddRmsNormArgs;
    const norm::Masks k(launch, launch[Args::x]);
    const norm::ForwardMaps m{.x = row_map(launch[Args::x], k.row),
                              .residual = row_map(launch[Args::residual], k.row),
                              .weight = row_map(launch[Args::weight], k.all),
                              .y = row_map(launch[Args::y], k.row),
                              .sum = row_map(launch[Args::sum], k.row),
                              .rstd = k.statistic(launch[Args::rstd])};
    return norm::forward_any<false>(launch, m, launch.scalars[Args::eps]);
  }
};

template <>
struct CpuKernel<norm::RmsNormAdd> {
  static Status run(const Launch& launch) {
    using Args = norm::RmsNormAddArgs;
    const norm::Masks k(launch, launch[Args::x]);
    const norm::ForwardMaps m{.x = row_map(launch[Args::x], k.row),
                              .residual = row_map(launch[Args::residual], k.row),
                              .weight = row_map(launch[Args::weight], k.all),
                              .y = row_map(launch[Args::y], k.row),
                              .rstd = k.statistic(launch[Args::rstd])};
    return norm::forward_any<false>(launch, m, launch.scalars[Args::eps]);
  }
};

template <>
struct CpuKernel<norm::LayerNorm> {
  static Status run(const Launch& launch) {
    using Args = norm::LayerNormArgs;
    const norm::Masks k(launch, launch[Args::x]);
    const norm::ForwardMaps m{.x = row_map(launch[Args::x], k.row),
                              .weight = k.parameter(launch[Args::weight]),
                              .bias = k.parameter(launch[Args::bias]),
                              .y = row_map(launch[Args::y], k.row),
                              .mean = k.statistic(launch[Args::mean]),
                              .rstd = k.statistic(launch[Args::rstd])};
    return norm::forward_any<true>(launch, m, launch.scalars[Args::eps]);
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(norm)
