// Norms of channels over a batch, backward:
//   dx = (dy - mean(dy) - xhat mean(dy xhat)) rstd weight with xhat = (x - mean) rstd, where the statistics are the
//   batch's own; dy rstd weight where they are the running ones. dweight = sum of dy xhat, dbias of dy: per strip, then
//   over the strips, in order.
#include "ops/norm/cpu_batch.h"

namespace baracuda::norm {
namespace {

struct BatchGradientMaps {
  const ChannelMap dy, x, dx;
  RowMap weight{}, mean{}, rstd{}, dweight{}, dbias{};
};

// A row's sums of dy and of dy xhat.
struct RowSums {
  double dy, dy_xhat;
};

// dx = (dy - dy_mean - (x - mean) rstd slope) rstd weight for a tile of channels; (dy - dy_mean - (x - mean) pull)
// factor where that is the same.
template <class C>
struct SpreadTile {
  C mean[kSideTile], rstd[kSideTile], weight[kSideTile], dy_mean[kSideTile], slope[kSideTile], pull[kSideTile],
      factor[kSideTile];
  bool simple = true;

  SpreadTile(const BatchGradientMaps& m, int64_t g, int64_t c, int64_t n) {
    get_channels(m.mean, g, c, n, C(0), mean), get_channels(m.rstd, g, c, n, C(1), rstd);
    get_channels(m.weight, 0, c, n, C(1), weight);
  }
  void join(const RowSums* rows, double count, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      dy_mean[i] = static_cast<C>(rows[i].dy / count), slope[i] = static_cast<C>(rows[i].dy_xhat / count);
      pull[i] = rstd[i] * slope[i], factor[i] = rstd[i] * weight[i];
      simple &= joins(factor[i], weight[i]) & joins(pull[i], slope[i]);
    }
  }
  C of(C d, C v, int64_t i) const {
    return (d - dy_mean[i] - (v - mean[i]) * rstd[i] * slope[i]) * rstd[i] * weight[i];
  }
};

template <class C>
class BatchBackward {
  using Vec = typename Lanes<C>::Vec;
  using Values = typename RowTiles<C>::Values;

 public:
  BatchBackward(const BatchGradientMaps& m, const ChannelCut& cut, void* workspace, bool training)
      : m_(m),
        cut_(cut),
        sums_(workspace, cut),
        two_(m.dy.rows, m.x.rows),
        three_(m.dy.rows, m.x.rows, m.dx.rows),
        training_(training),
        rows_(static_cast<RowSums*>(workspace)) {}

  void run() {
    const bool sums = training_ || m_.dweight.present() || m_.dbias.present();
    const bool whole = cut_.strips == 1;  // what is summed is written while it is in the caches
    if (sums) {
      cut_.pieces([&](int64_t g, int64_t strip, int64_t c, int64_t n) {
        cut_.across ? sum_side(g, strip, c, n) : sum_row(g, strip, c);
        if (!whole) return;
        finish(g, c, n);
        spread(g, strip, c, n);
      });
      cut_.channel_tiles([&](int64_t c, int64_t n) {
        for (int64_t g = 0; g < cut_.groups && !whole; ++g) finish(g, c, n);
        publish(c, n);
      });
    }
    if (!sums || !whole) cut_.pieces([&](auto... piece) { spread(piece...); });
  }

 private:
  void sum_row(int64_t g, int64_t strip, int64_t c) {
    C grad[kRowTile<C>], in[kRowTile<C>], mean, rstd;
    get_channels(m_.mean, g, c, 1, C(0), &mean), get_channels(m_.rstd, g, c, 1, C(1), &rstd);
    const int64_t r = g * cut_.channels + c;
    const char *from_d = m_.dy.rows.row(r), *from_x = m_.x.rows.row(r);
    double all = 0, slopes = 0;
    two_.each(cut_.begin(strip), cut_.end(strip), [&](int64_t at, int64_t n) {
      const Values d(two_, m_.dy.rows, from_d, at, n, grad), v(two_, m_.x.rows, from_x, at, n, in);
      LaneSums<C> sum, slope;
      two_.parts(at, n, [&](int64_t from, int64_t part) {
        const C *a = d[from], *x = v[from];
        sum.add(part, [](auto t) { return t; }, a);
        slope.add(part, [mean, rstd](auto t, auto u) { return t * ((u - mean) * rstd); }, a, x);
      });
      all += sum.value(), slopes += slope.value();
    });
    sums_.first(g, strip)[c] = all, sums_.second(g, strip)[c] = slopes;
  }
  // The same for channels [c, c + n) side by side, in blocks of positions.
  void sum_side(int64_t g, int64_t strip, int64_t c, int64_t n) {
    C grad[kStripBlock * kSideTile], in[kStripBlock * kSideTile], sums[kSideTile], slopes[kSideTile];
    const SpreadTile<C> t(m_, g, c, n);
    double *all = sums_.first(g, strip) + c, *sloped = sums_.second(g, strip) + c;
    for (int64_t i = 0; i < n; ++i) all[i] = sloped[i] = 0;
    for (int64_t at = cut_.begin(strip), count; at < cut_.end(strip); at += count) {
      count = std::min(kStripBlock, cut_.end(strip) - at);
      const SideBlock<C> d(m_.dy, g, at, count, c, n, grad), v(m_.x, g, at, count, c, n, in);
      each_columns<C>(n, [&](auto columns, int64_t i) __attribute__((always_inline)) {
        constexpr int kVectors = decltype(columns)::kVectors;
        Vec sum[kVectors] = {}, slope[kVectors] = {}, mean[kVectors], rstd[kVectors];
        for (int j = 0; j < kVectors; ++j) mean[j] = columns.load(t.mean + i, j), rstd[j] = columns.load(t.rstd + i, j);
        for (int64_t k = 0; k < count; ++k) {
          for (int j = 0; j < kVectors; ++j) {
            const Vec a = columns.load(d.at + k * d.step + i, j), x = columns.load(v.at + k * v.step + i, j);
            sum[j] += a, slope[j] += a * ((x - mean[j]) * rstd[j]);
          }
        }
        for (int j = 0; j < kVectors; ++j) columns.store(sums + i, j, sum[j]), columns.store(slopes + i, j, slope[j]);
      });
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) all[i] += sums[i], sloped[i] += slopes[i];
    }
  }
  void finish(int64_t g, int64_t c, int64_t n) {
    for (int64_t i = c; i < c + n; ++i) {
      RowSums to{};
      for (int64_t s = 0; s < cut_.strips; ++s) to.dy += sums_.first(g, s)[i], to.dy_xhat += sums_.second(g, s)[i];
      rows_[g * cut_.channels + i] = to;
    }
  }
  void publish(int64_t c, int64_t n) const {
    C dweight[kSideTile], dbias[kSideTile];
    for (int64_t i = 0; i < n; ++i) {
      RowSums all{};
      for (int64_t g = 0; g < cut_.groups; ++g) {
        const RowSums& own = rows_[g * cut_.channels + c + i];
        all.dy += own.dy, all.dy_xhat += own.dy_xhat;
      }
      dweight[i] = static_cast<C>(all.dy_xhat), dbias[i] = static_cast<C>(all.dy);
    }
    put_channels(m_.dweight, 0, c, n, dweight), put_channels(m_.dbias, 0, c, n, dbias);
  }

  void spread(int64_t g, int64_t strip, int64_t c, int64_t n) const {
    SpreadTile<C> t(m_, g, c, n);
    if (training_) t.join(rows_ + g * cut_.channels + c, static_cast<double>(cut_.length), n);
    cut_.across ? spread_side(t, g, strip, c, n) : spread_row(t, g, strip, c);
  }
  void spread_row(const SpreadTile<C>& t, int64_t g, int64_t strip, int64_t c) const {
    C grad[kRowTile<C>], in[kRowTile<C>], out[kRowTile<C>];
    const int64_t r = g * cut_.channels + c;
    const char *from_d = m_.dy.rows.row(r), *from_x = m_.x.rows.row(r);
    char* to = m_.dx.rows.row(r);
    three_.each(cut_.begin(strip), cut_.end(strip), [&](int64_t at, int64_t tile) {
      const Values dy(three_, m_.dy.rows, from_d, at, tile, grad), x(three_, m_.x.rows, from_x, at, tile, in);
      three_.parts(at, tile, [&](int64_t first, int64_t n) {
        C* dx = three_.to(m_.dx.rows, to, first, out);
        spread_part(t, dy[first], x[first], dx, n);
        three_.put(m_.dx.rows, to, first, n, dx);
      });
    });
  }
  void spread_part(const SpreadTile<C>& t, const C* d, const C* v, C* dx, int64_t n) const {
    const C mean = t.mean[0], rstd = t.rstd[0], weight = t.weight[0];
    if (!training_) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) dx[i] = d[i] * rstd * weight;
    } else if (t.simple) {
      const C dy_mean = t.dy_mean[0], pull = t.pull[0], factor = t.factor[0];
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) dx[i] = (d[i] - dy_mean - (v[i] - mean) * pull) * factor;
    } else {
      for (int64_t i = 0; i < n; ++i) dx[i] = t.of(d[i], v[i], 0);
    }
  }
  void spread_side(const SpreadTile<C>& t, int64_t g, int64_t strip, int64_t c, int64_t n) const {
    C grad[kStripBlock * kSideTile], in[kStripBlock * kSideTile], out[kStripBlock * kSideTile];
    for (int64_t at = cut_.begin(strip), count; at < cut_.end(strip); at += count) {
      count = std::min(kStripBlock, cut_.end(strip) - at);
      const SideBlock<C> d(m_.dy, g, at, count, c, n, grad), v(m_.x, g, at, count, c, n, in);
      const SideTarget<C> dx(m_.dx, g, at, c, n, out);
      if (training_ && t.simple) {
        spread_block(t, d, v, dx, count, n);
      } else {
        for (int64_t k = 0; k < count; ++k) {
          C* to = dx.at + k * dx.step;
          const C *from = d.at + k * d.step, *x = v.at + k * v.step;
#pragma GCC ivdep
          for (int64_t i = 0; i < n; ++i)
            to[i] = training_ ? t.of(from[i], x[i], i) : from[i] * t.rstd[i] * t.weight[i];
        }
      }
      dx.put(m_.dx, g, at, count, c, n);
    }
  }
  static void spread_block(const SpreadTile<C>& t, const SideBlock<C>& d, const SideBlock<C>& v,
                           const SideTarget<C>& dx, int64_t count, int64_t n) {
    each_columns<C>(n, [&](auto columns, int64_t i) __attribute__((always_inline)) {
      constexpr int kVectors = decltype(columns)::kVectors;
      Vec mean[kVectors], pull[kVectors], factor[kVectors], dy_mean[kVectors];
      for (int j = 0; j < kVectors; ++j) {
        mean[j] = columns.load(t.mean + i, j), pull[j] = columns.load(t.pull + i, j);
        factor[j] = columns.load(t.factor + i, j), dy_mean[j] = columns.load(t.dy_mean + i, j);
      }
      for (int64_t k = 0; k < count; ++k) {
        for (int j = 0; j < kVectors; ++j) {
          const Vec a = columns.load(d.at + k * d.step + i, j), x = columns.load(v.at + k * v.step + i, j);
          columns.store(dx.at + k * dx.step + i, j, (a - dy_mean[j] - (x - mean[j]) * pull[j]) * factor[j]);
        }
      }
    });
  }

  const BatchGradientMaps& m_;
  const ChannelCut& cut_;
  const StripSums sums_;
  const RowTiles<C> two_, three_;
  const bool training_;
  RowSums* rows_;
};

}  // namespace
}  // namespace baracuda::norm

namespace baracuda {

template <>
Status CpuKernel<norm::Backward<norm::BatchNorm>>::run(const Launch& launch) {
  using Args = norm::BatchNormBackwardArgs;
  const auto attrs = attributes<norm::BatchNormAttrs>(launch);
  const TensorView& x = launch[Args::x];
  const bool each = attrs.per_instance;
  auto of = [&](int k) { return norm::channel_map(launch[k]); };
  const norm::BatchGradientMaps m{.dy{launch[Args::dy], each},
                                  .x{x, each},
                                  .dx{launch[Args::dx], each},
                                  .weight = of(Args::weight),
                                  .mean = of(Args::mean),
                                  .rstd = of(Args::rstd),
                                  .dweight = of(Args::dweight),
                                  .dbias = of(Args::dbias)};
  const norm::ChannelCut cut(m.x, each ? x.shape[0] : 1, x.shape[1]);
  const bool training = attrs.training;
  launch.element == Element::F64 ? norm::BatchBackward<double>(m, cut, launch.workspace, training).run()
                                 : norm::BatchBackward<float>(m, cut, launch.workspace, training).run();
  return Status::Ok;
}

}  // namespace baracuda
