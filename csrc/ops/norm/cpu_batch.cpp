// Norms of channels over a batch, forward. Deviations are from the mean of a tile, or of a block of positions, which is
// then set against that of those before it (Chan): x is read once for its statistics, and once to be written.
#include "ops/norm/cpu_batch.h"
#include "host/careful.h"

namespace baracuda::norm {
namespace {

struct BatchMaps {
  const ChannelMap x, y;
  RowMap weight{}, bias{}, running_mean{}, running_var{}, mean{}, rstd{}, next_mean{}, next_var{};
};

// Mean and sum of squares about it of values that come in parts.
struct Moments {
  double mean = 0, squares = 0;
  int64_t count = 0;

  void add(double other, double more, int64_t n) {
    const double share = static_cast<double>(n) / static_cast<double>(count + n);
    const double apart = count > 0 ? other - mean : 0;
    mean = count > 0 ? mean + apart * share : other;
    squares += more + apart * apart * (static_cast<double>(count) * share);
    count += n;
  }
};

// A row's statistics, of its values times `scale`, a power of two.
struct RowStatistics {
  double mean, rstd, scale, squares;
};
static_assert(sizeof(RowStatistics) == 8 * kRowNumbers);

// y = (scale x - mean) rstd weight + bias for a tile of channels; (x - mean) factor + bias where that is the same.
template <class C>
struct ScaleTile {
  C scale[kSideTile], mean[kSideTile], rstd[kSideTile], weight[kSideTile], bias[kSideTile], factor[kSideTile];
  bool simple = true;

  ScaleTile(const BatchMaps& m, const RowStatistics* rows, int64_t c, int64_t n) {
    get_channels(m.weight, 0, c, n, C(1), weight), get_channels(m.bias, 0, c, n, C(0), bias);
    for (int64_t i = 0; i < n; ++i) {
      scale[i] = static_cast<C>(rows[i].scale), mean[i] = static_cast<C>(rows[i].mean);
      rstd[i] = static_cast<C>(rows[i].rstd), factor[i] = rstd[i] * weight[i];
      simple &= (scale[i] == C(1)) & joins(factor[i], weight[i]);
    }
  }
  C of(C v, int64_t i) const { return (v * scale[i] - mean[i]) * rstd[i] * weight[i] + bias[i]; }
};

template <class C>
class BatchForward {
 public:
  BatchForward(const BatchMaps& m, const ChannelCut& cut, void* workspace, double eps, double momentum)
      : m_(m),
        cut_(cut),
        sums_(workspace, cut),
        tiles_(m.x.rows),
        both_(m.x.rows, m.y.rows),
        eps_(eps),
        momentum_(momentum),
        rows_(static_cast<RowStatistics*>(workspace)) {}

  void training() {
    const bool whole = cut_.strips == 1;  // what is summed is written while it is in the caches
    cut_.pieces([&](int64_t g, int64_t strip, int64_t c, int64_t n) {
      cut_.across ? sum_side(g, strip, c, n) : sum_row(g, strip, c);
      if (!whole) return;
      for (int64_t i = c; i < c + n; ++i) finish_row(g, i);
      scale(g, strip, c, n);
    });
    cut_.channel_tiles([&](int64_t c, int64_t n) {
      for (int64_t g = 0; g < cut_.groups && !whole; ++g)
        for (int64_t i = c; i < c + n; ++i) finish_row(g, i);
      publish(c, n);
    });
    if (!whole) cut_.pieces([&](auto... piece) { scale(piece...); });
  }

  void inference() {
    cut_.channel_tiles([&](int64_t c, int64_t n) {
      C mean[kSideTile], var[kSideTile];
      get_channels(m_.running_mean, 0, c, n, C(0), mean), get_channels(m_.running_var, 0, c, n, C(0), var);
      for (int64_t i = 0; i < n; ++i) rows_[c + i] = {mean[i], 1 / std::sqrt(var[i] + eps_), 1, 0};
      publish(c, n);
    });
    cut_.pieces([&](auto... piece) { scale(piece...); });
  }

 private:
  // Of values [begin, end) of a row, times a scale.
  Moments moments(const char* row, int64_t begin, int64_t end, C scale) const {
    return scale == C(1) ? moments(row, begin, end, [](auto t) { return t; })
                         : moments(row, begin, end, [scale](auto t) { return t * scale; });
  }
  template <class Read>
  Moments moments(const char* row, int64_t begin, int64_t end, Read seen) const {
    C buffer[kRowTile<C>];
    Moments found;
    tiles_.each(begin, end, [&](int64_t at, int64_t n) {
      const typename RowTiles<C>::Values v(tiles_, m_.x.rows, row, at, n, buffer);
      LaneSums<C> sum, squares;
      tiles_.parts(at, n, [&](int64_t from, int64_t part) { sum.add(part, seen, v[from]); });
      const C mean = sum.value() / static_cast<C>(n);
      tiles_.parts(at, n, [&](int64_t from, int64_t part) {
        squares.add(part, [&](auto t) { return (seen(t) - mean) * (seen(t) - mean); }, v[from]);
      });
      found.add(mean, squares.value(), n);
    });
    return found;
  }
  void sum_row(int64_t g, int64_t strip, int64_t c) {
    const Moments found = moments(row(m_.x, g, c), cut_.begin(strip), cut_.end(strip), C(1));
    sums_.first(g, strip)[c] = found.mean, sums_.second(g, strip)[c] = found.squares;
  }
  // The same for channels [c, c + n) side by side, in blocks of positions.
  void sum_side(int64_t g, int64_t strip, int64_t c, int64_t n) {
    using Vec = typename Lanes<C>::Vec;
    C buffer[kStripBlock * kSideTile], mean[kSideTile], squares[kSideTile];
    double *means = sums_.first(g, strip) + c, *all = sums_.second(g, strip) + c;
    for (int64_t at = cut_.begin(strip), count; at < cut_.end(strip); at += count) {
      count = std::min(kStripBlock, cut_.end(strip) - at);
      const SideBlock<C> x(m_.x, g, at, count, c, n, buffer);
      each_columns<C>(n, [&](auto columns, int64_t i) __attribute__((always_inline)) {
        constexpr int kVectors = decltype(columns)::kVectors;
        Vec sum[kVectors] = {}, square[kVectors] = {};
        for (int64_t k = 0; k < count; ++k)
          for (int j = 0; j < kVectors; ++j) sum[j] += columns.load(x.at + k * x.step + i, j);
        for (int j = 0; j < kVectors; ++j) sum[j] /= static_cast<C>(count);
        for (int64_t k = 0; k < count; ++k) {
          for (int j = 0; j < kVectors; ++j) {
            const Vec apart = columns.load(x.at + k * x.step + i, j) - sum[j];
            square[j] += apart * apart;
          }
        }
        for (int j = 0; j < kVectors; ++j) columns.store(mean + i, j, sum[j]), columns.store(squares + i, j, square[j]);
      });
      merge(means, all, at - cut_.begin(strip), mean, squares, count, n);
    }
  }
  static void merge(double* means, double* all, int64_t before, const C* mean, const C* squares, int64_t count,
                    int64_t n) {
    if (before == 0) {
      for (int64_t i = 0; i < n; ++i) means[i] = mean[i], all[i] = squares[i];
      return;
    }
    const double share = static_cast<double>(count) / static_cast<double>(before + count);
    const double weight = static_cast<double>(before) * share;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const double apart = static_cast<double>(mean[i]) - means[i];
      means[i] += apart * share;
      all[i] += squares[i] + apart * apart * weight;
    }
  }

  void finish_row(int64_t g, int64_t c) {
    Moments all;
    for (int64_t s = 0; s < cut_.strips; ++s) all.add(sums_.first(g, s)[c], sums_.second(g, s)[c], cut_.count(s));
    const double count = static_cast<double>(cut_.length);
    RowStatistics& to = rows_[g * cut_.channels + c];
    to = {cut_.length ? all.mean : std::nan(""), 1 / std::sqrt(all.squares / count + eps_), 1, all.squares};
    if (squares_lost_by(static_cast<C>(to.rstd))) careful(row(m_.x, g, c), to);
  }
  // A row whose squares left the range of C, from values that are scaled near 1.
  [[gnu::noinline]] void careful(const char* row, RowStatistics& to) const {
    C most = 0, buffer[kRowTile<C>];
    tiles_.each(0, cut_.length, [&](int64_t at, int64_t n) {
      const typename RowTiles<C>::Values v(tiles_, m_.x.rows, row, at, n, buffer);
      tiles_.parts(at, n, [&](int64_t from, int64_t part) { most = largest_size(most, v[from], part); });
    });
    const C scale = scale_of(most);
    if (scale == C(1)) return;
    const double by = scale;
    const Moments all = moments(row, 0, cut_.length, scale);
    to = {all.mean, 1 / std::sqrt(all.squares / static_cast<double>(cut_.length) + eps_ * by * by), by, all.squares};
  }

  // What is saved of channels [c, c + n), and the running statistics, which are read before anything is written.
  void publish(int64_t c, int64_t n) const {
    C mean[kSideTile], other[kSideTile], old_mean[kSideTile], old_var[kSideTile];
    double means[kSideTile] = {}, vars[kSideTile] = {};
    get_channels(m_.running_mean, 0, c, n, C(0), old_mean), get_channels(m_.running_var, 0, c, n, C(0), old_var);
    for (int64_t g = 0; g < cut_.groups; ++g) {
      const RowStatistics* s = rows_ + g * cut_.channels + c;
      for (int64_t i = 0; i < n; ++i) {
        means[i] += s[i].mean / s[i].scale;
        vars[i] += s[i].squares / static_cast<double>(cut_.length - 1) / s[i].scale / s[i].scale;
        mean[i] = static_cast<C>(s[i].mean / s[i].scale), other[i] = static_cast<C>(s[i].rstd * s[i].scale);
      }
      put_channels(m_.mean, g, c, n, mean), put_channels(m_.rstd, g, c, n, other);
    }
    if (!m_.next_mean.present()) return;
    const double keep = 1 - momentum_, share = momentum_ / static_cast<double>(cut_.groups);
    for (int64_t i = 0; i < n && cut_.length * cut_.groups > 0; ++i) {
      old_mean[i] = static_cast<C>(keep * static_cast<double>(old_mean[i]) + share * means[i]);
      old_var[i] = static_cast<C>(keep * static_cast<double>(old_var[i]) + share * vars[i]);
    }
    put_channels(m_.next_mean, 0, c, n, old_mean), put_channels(m_.next_var, 0, c, n, old_var);
  }
  char* row(const ChannelMap& m, int64_t g, int64_t c) const { return m.rows.row(g * cut_.channels + c); }

  void scale(int64_t g, int64_t strip, int64_t c, int64_t n) const {
    const ScaleTile<C> t(m_, rows_ + g * cut_.channels + c, c, n);
    cut_.across ? scale_side(t, g, strip, c, n) : scale_row(t, g, strip, c);
  }
  void scale_row(const ScaleTile<C>& t, int64_t g, int64_t strip, int64_t c) const {
    C in[kRowTile<C>], out[kRowTile<C>];
    const C mean = t.mean[0], factor = t.factor[0], bias = t.bias[0];
    const char* from = row(m_.x, g, c);
    char* to = row(m_.y, g, c);
    both_.each(cut_.begin(strip), cut_.end(strip), [&](int64_t at, int64_t tile) {
      const typename RowTiles<C>::Values x(both_, m_.x.rows, from, at, tile, in);
      both_.parts(at, tile, [&](int64_t first, int64_t n) {
        const C* v = x[first];
        C* y = both_.to(m_.y.rows, to, first, out);
        if (t.simple) {
#pragma GCC ivdep
          for (int64_t i = 0; i < n; ++i) y[i] = (v[i] - mean) * factor + bias;
        } else {
          for (int64_t i = 0; i < n; ++i) y[i] = t.of(v[i], 0);
        }
        both_.put(m_.y.rows, to, first, n, y);
      });
    });
  }
  void scale_side(const ScaleTile<C>& t, int64_t g, int64_t strip, int64_t c, int64_t n) const {
    using Vec = typename Lanes<C>::Vec;
    C in[kStripBlock * kSideTile], out[kStripBlock * kSideTile];
    for (int64_t at = cut_.begin(strip), count; at < cut_.end(strip); at += count) {
      count = std::min(kStripBlock, cut_.end(strip) - at);
      const SideBlock<C> x(m_.x, g, at, count, c, n, in);
      const SideTarget<C> y(m_.y, g, at, c, n, out);
      if (!t.simple) {
        for (int64_t k = 0; k < count; ++k)
          for (int64_t i = 0; i < n; ++i) y.at[k * y.step + i] = t.of(x.at[k * x.step + i], i);
      } else {
        each_columns<C>(n, [&](auto columns, int64_t i) __attribute__((always_inline)) {
          constexpr int kVectors = decltype(columns)::kVectors;
          Vec mean[kVectors], factor[kVectors], bias[kVectors];
          for (int j = 0; j < kVectors; ++j) {
            mean[j] = columns.load(t.mean + i, j), factor[j] = columns.load(t.factor + i, j);
            bias[j] = columns.load(t.bias + i, j);
          }
          for (int64_t k = 0; k < count; ++k)
            for (int j = 0; j < kVectors; ++j)
              columns.store(y.at + k * y.step + i, j,
                            (columns.load(x.at + k * x.step + i, j) - mean[j]) * factor[j] + bias[j]);
        });
      }
      y.put(m_.y, g, at, count, c, n);
    }
  }

  const BatchMaps& m_;
  const ChannelCut& cut_;
  const StripSums sums_;
  const RowTiles<C> tiles_, both_;
  const double eps_, momentum_;
  RowStatistics* rows_;
};

template <class C>
void batch_forward(const Launch& launch, const BatchMaps& m, bool training, int64_t groups) {
  using Args = BatchNormArgs;
  const ChannelCut cut(m.x, groups, launch[Args::x].shape[1]);
  BatchForward<C> f(m, cut, launch.workspace, launch.scalars[Args::eps].as_f64(),
                    m.next_mean.present() ? launch.scalars[Args::momentum].as_f64() : 0);
  training ? f.training() : f.inference();
}

}  // namespace
}  // namespace baracuda::norm

namespace baracuda {

Status CpuKernel<norm::BatchNorm>::run(const Launch& launch) {
  using Args = norm::BatchNormArgs;
  const auto attrs = attributes<norm::BatchNormAttrs>(launch);
  const TensorView& x = launch[Args::x];
  const bool each = attrs.per_instance;
  auto of = [&](int k) { return norm::channel_map(launch[k]); };
  const norm::BatchMaps m{.x{x, each},
                          .y{launch[Args::y], each},
                          .weight = of(Args::weight),
                          .bias = of(Args::bias),
                          .running_mean = of(Args::running_mean),
                          .running_var = of(Args::running_var),
                          .mean = of(Args::mean),
                          .rstd = of(Args::rstd),
                          .next_mean = of(Args::next_mean),
                          .next_var = of(Args::next_var)};
  const int64_t groups = each ? x.shape[0] : 1;
  launch.element == Element::F64 ? norm::batch_forward<double>(launch, m, attrs.training, groups)
                                 : norm::batch_forward<float>(launch, m, attrs.training, groups);
  return Status::Ok;
}

}  // namespace baracuda
