// Means over the samples of regions' bins: the samples of some bins are worked out once for all channels. Gradients are
// added up in the order of regions, for some channels of an image at a time, in twice the precision.
#include <bit>

#include "core/compute.h"
#include "core/parallel.h"
#include "host/rows.h"
#include "ops/image/cpu.h"
#include "ops/image/regions.h"
#include "ops/image/roi_pool.h"
#include "ops/image/stored.h"
#include "ops/image/wide_sums.h"
#include "ops/pool/blocked_sum.h"

namespace baracuda::image {
namespace {

// The regions' numbers.
template <class C>
class Rois {
 public:
  explicit Rois(const TensorView& rois) : rois_(rois) {}
  C number(int64_t k, int i) const {
    C v;
    const int64_t at = k * rois_.strides[0] + i * rois_.strides[1];
    load<C>(rois_.element, rois_.as<char>() + at * size_of(rois_.element), 1, &v, 1);
    return v;
  }
  int64_t image(int64_t k) const { return static_cast<int64_t>(number(k, 0)); }
  // Along the vertical axis, or the horizontal one.
  Region<C> along(const Regions& r, int64_t k, int axis) const {
    return region_of<C>(r.side[axis], number(k, 2 - axis), number(k, 4 - axis), static_cast<C>(r.scale));
  }

 private:
  const TensorView& rois_;
};

// The first region whose image there is not becomes the launch's failure.
template <class C>
Status images_exist(const Launch& launch, int param, int64_t images) {
  const TensorView& rois = launch[param];
  const Rois<C> regions(rois);
  for (int64_t k = 0; k < rois.shape[0]; ++k) {
    const C n = regions.number(k, 0);
    if (n > C(-1) && n < static_cast<C>(images)) continue;
    const bool finite = n - n == C(0);
    const int64_t given = finite ? static_cast<int64_t>(held(n, C(-1e18), C(1e18))) : std::bit_cast<int64_t>(double{n});
    if (launch.failure)
      *launch.failure = {param, 5 * k, given, finite ? images : static_cast<int64_t>(ValueRange::Finite)};
    return finite ? Status::IndexOutOfRange : Status::ValueOutOfRange;
  }
  return Status::Ok;
}

// Calls f(beside along the vertical axis, along the horizontal one) for all samples of a bin that are inside.
template <class C, class F>
void each_sample(const Regions& r, const Region<C>& h, const Region<C>& w, int64_t bin, const F& f) {
  const int64_t row = bin / r.side[1].bins, column = bin % r.side[1].bins;
  const SampleRange ys = samples_inside(r.side[0], h, row), xs = samples_inside(r.side[1], w, column);
  for (int64_t i = ys.begin; i < ys.end; ++i) {
    const Beside<C> y = beside(r.side[0], sample_at(h, row, i));
    for (int64_t j = xs.begin; y.low >= 0 && j < xs.end; ++j) {
      const Beside<C> x = beside(r.side[1], sample_at(w, column, j));
      if (x.low >= 0) f(y, x);
    }
  }
}

template <class E>
class Forward {
 public:
  using C = typename E::Number;
  Forward(const Regions& r, const TensorView& x, const TensorView& rois, const TensorView& y)
      : regions_(r), rois_(rois), x_(x), y_(y), channels_(x.shape[1]), bins_(r.side[0].bins * r.side[1].bins) {}

  void run_all(int64_t count) const {
    parallel_for(count, row_grain(channels_ * bins_ * 16), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) region(k);
    });
  }

 private:
  static constexpr int64_t kSamples = 512, kBins = 64;
  struct Table {
    int64_t begin[kBins + 1];  // samples of each bin
    int64_t offset[kSamples][4];
    C weight[kSamples][4];
  };

  void region(int64_t k) const {
    const Region<C> h = rois_.along(regions_, k, 0), w = rois_.along(regions_, k, 1);
    const C count = samples_of(h, w);
    Table t;
    for (int64_t first = 0, last; first < bins_; first = last) {
      int64_t filled = 0;
      for (last = first; last < bins_ && last - first < kBins && fits(h, w, last, filled); ++last) {
        t.begin[last - first] = filled;
        each_sample<C>(regions_, h, w, last, [&](const Beside<C>& y, const Beside<C>& x) { put(t, filled++, y, x); });
      }
      t.begin[last - first] = filled;
      for (int64_t c = 0; c < channels_; ++c) write(k, c, first, last, t, count);
      if (last == first) whole(k, h, w, last++, count);
    }
  }
  bool fits(const Region<C>& h, const Region<C>& w, int64_t bin, int64_t filled) const {
    const int64_t row = bin / regions_.side[1].bins, column = bin % regions_.side[1].bins;
    const SampleRange ys = samples_inside(regions_.side[0], h, row), xs = samples_inside(regions_.side[1], w, column);
    return static_cast<double>(ys.end - ys.begin) * static_cast<double>(xs.end - xs.begin) <=
           static_cast<double>(kSamples - filled);
  }
  void put(Table& t, int64_t at, const Beside<C>& y, const Beside<C>& x) const {
    const int64_t rows[] = {y.low, y.high}, columns[] = {x.low, x.high};
    const C of_row[] = {y.of_low, y.of_high}, of_column[] = {x.of_low, x.of_high};
    for (int i = 0; i < 4; ++i) {
      t.offset[at][i] = rows[i / 2] * x_.stride[1] + columns[i % 2] * x_.stride[2];
      t.weight[at][i] = of_row[i / 2] * of_column[i % 2];
    }
  }
  const typename E::Stored* plane(int64_t k, int64_t c) const {
    return reinterpret_cast<const typename E::Stored*>(x_.at(rois_.image(k), c, 0, 0, 0));
  }
  void write(int64_t k, int64_t c, int64_t first, int64_t last, const Table& t, C count) const {
    const auto* const from = plane(k, c);
    for (int64_t bin = first; bin < last; ++bin) {
      pool::BlockedSum<C> sum = pool::no_sum<C>();
      for (int64_t s = t.begin[bin - first]; s < t.begin[bin - first + 1]; ++s) {
        C four = 0;
        for (int i = 0; i < 4; ++i) four += t.weight[s][i] * E::load(from[t.offset[s][i]]);
        sum.add(four);
      }
      keep(k, c, bin, (sum.total + sum.part) / count);
    }
  }
  // A bin of more samples than a table holds.
  void whole(int64_t k, const Region<C>& h, const Region<C>& w, int64_t bin, C count) const {
    for (int64_t c = 0; c < channels_; ++c) {
      const auto* const from = plane(k, c);
      pool::BlockedSum<C> sum = pool::no_sum<C>();
      each_sample<C>(regions_, h, w, bin, [&](const Beside<C>& y, const Beside<C>& x) {
        const auto *const low = from + y.low * x_.stride[1], *const high = from + y.high * x_.stride[1];
        const int64_t a = x.low * x_.stride[2], b = x.high * x_.stride[2];
        sum.add(y.of_low * (x.of_low * E::load(low[a]) + x.of_high * E::load(low[b])) +
                y.of_high * (x.of_low * E::load(high[a]) + x.of_high * E::load(high[b])));
      });
      keep(k, c, bin, (sum.total + sum.part) / count);
    }
  }
  void keep(int64_t k, int64_t c, int64_t bin, C v) const {
    store<C>(y_.element, y_.at(k, c, 0, bin / regions_.side[1].bins, bin % regions_.side[1].bins), 1, &v, 1);
  }

  const Regions& regions_;
  const Rois<C> rois_;
  const Planes x_, y_;
  const int64_t channels_, bins_;
};

template <class C>
class Backward {
 public:
  Backward(const Regions& r, const TensorView& dy, const TensorView& rois, const TensorView& dx, Wide<C>* sums)
      : regions_(r), rois_(rois), dy_(dy), dx_(dx), count_(rois.shape[0]), channels_(dx.shape[1]), sums_(sums) {}

  void run_all(int64_t images) const {
    const int64_t blocks = (channels_ + kSummed - 1) / kSummed, places = dx_.size[1] * dx_.size[2];
    parallel_for(images * blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / blocks, first = i % blocks * kSummed, m = std::min(kSummed, channels_ - first);
        Wide<C>* const sums = sums_ + (image * channels_ + first) * places;
        std::fill_n(sums, places * m, Wide<C>{});
        for (int64_t k = 0; k < count_; ++k)
          if (rois_.image(k) == image) region(k, first, m, sums);
        write_sums<C>(dx_, image, first, m, sums);
      }
    });
  }

 private:
  void region(int64_t k, int64_t first, int64_t m, Wide<C>* sums) const {
    const Region<C> h = rois_.along(regions_, k, 0), w = rois_.along(regions_, k, 1);
    const C count = samples_of(h, w);
    const int64_t columns = regions_.side[1].bins, width = dx_.size[2];
    for (int64_t bin = 0; bin < regions_.side[0].bins * columns; ++bin) {
      C given[kSummed];
      load<C>(dy_.element, dy_.at(k, first, 0, bin / columns, bin % columns), dy_.channel, given, m);
      for (int64_t c = 0; c < m; ++c) given[c] /= count;
      each_sample<C>(regions_, h, w, bin, [&](const Beside<C>& y, const Beside<C>& x) {
        const auto spread = [&](int64_t row, int64_t column, C weight) {
          Wide<C>* const to = sums + (row * width + column) * m;
          for (int64_t c = 0; c < m; ++c) to[c].add(weight * given[c]);
        };
        spread(y.low, x.low, y.of_low * x.of_low), spread(y.low, x.high, y.of_low * x.of_high);
        spread(y.high, x.low, y.of_high * x.of_low), spread(y.high, x.high, y.of_high * x.of_high);
      });
    }
  }

  const Regions& regions_;
  const Rois<C> rois_;
  const Planes dy_, dx_;
  const int64_t count_, channels_;
  Wide<C>* const sums_;
};

// The largest value of each bin, and its place.
template <class E>
void pool_regions(const Launch& launch, const Regions& r) {
  using Args = RoiPoolArgs;
  using C = typename E::Number;
  const TensorView& indices = launch[Args::indices];
  const Planes x(launch[Args::x]), y(launch[Args::y]), places(indices.present() ? indices : launch[Args::y]);
  const Rois<C> rois(launch[Args::rois]);
  const int64_t channels = launch[Args::x].shape[1], high = r.side[0].bins, wide = r.side[1].bins;
  const auto side = [&](int64_t k, int axis, int64_t bin) {
    return places_of<C>(rois.number(k, 2 - axis), rois.number(k, 4 - axis), static_cast<C>(r.scale), r.side[axis].bins,
                        r.side[axis].size, bin);
  };
  const auto most = [&](int64_t k, int64_t c, int64_t i, int64_t j, const Places& rows, const Places& columns) {
    const auto* const from = reinterpret_cast<const typename E::Stored*>(x.at(rois.image(k), c, 0, 0, 0));
    C best = 0;
    int64_t found = -1;
    for (int64_t h = rows.begin; h < rows.end; ++h)
      for (int64_t w = columns.begin; w < columns.end; ++w) {
        const C v = E::load(from[h * x.stride[1] + w * x.stride[2]]);
        if (wins(v, best, found < 0)) best = v, found = h * r.side[1].size + w;
      }
    store<C>(y.element, y.at(k, c, 0, i, j), 1, &best, 1);
    if (indices.present()) store<int64_t>(indices.element, places.at(k, c, 0, i, j), 1, &found, 1);
  };
  parallel_for(launch[Args::rois].shape[0], row_grain(channels * high * wide * 16), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k)
      for (int64_t bin = 0; bin < high * wide; ++bin) {
        const Places rows = side(k, 0, bin / wide), columns = side(k, 1, bin % wide);
        for (int64_t c = 0; c < channels; ++c) most(k, c, bin / wide, bin % wide, rows, columns);
      }
  });
}

}  // namespace

Status run_roi_pool(const Launch& launch) {
  const TensorView& x = launch[RoiPoolArgs::x];
  Status status = Status::Ok;
  with_stored(x.element, [&](auto e) {
    using E = decltype(e);
    status = images_exist<typename E::Number>(launch, RoiPoolArgs::rois, x.shape[0]);
    if (status == Status::Ok) pool_regions<E>(launch, pooled_regions(launch));
  });
  return status;
}
Status run_roi_align(const Launch& launch) {
  using Args = RoiAlignArgs;
  const TensorView &x = launch[Args::x], &rois = launch[Args::rois], &y = launch[Args::y];
  Status status = Status::Ok;
  with_stored(x.element, [&](auto e) {
    using E = decltype(e);
    status = images_exist<typename E::Number>(launch, Args::rois, x.shape[0]);
    if (status != Status::Ok) return;
    Forward<E>(regions_of(launch, x, y), x, rois, y).run_all(rois.shape[0]);
  });
  return status;
}
Status run_roi_align_backward(const Launch& launch) {
  using Args = RoiAlignBackwardArgs;
  const TensorView &dy = launch[Args::dy], &rois = launch[Args::rois], &dx = launch[Args::dx];
  return with_float_type(dx.element, [&](auto c) {
    using C = decltype(c);
    const Status status = images_exist<C>(launch, Args::rois, dx.shape[0]);
    if (status != Status::Ok) return status;
    Backward<C>(regions_of(launch, dx, dy), dy, rois, dx, static_cast<Wide<C>*>(launch.workspace)).run_all(dx.shape[0]);
    return Status::Ok;
  });
}

}  // namespace baracuda::image
