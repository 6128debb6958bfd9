// Sampling by a grid: what some results take is worked out once for all channels. Gradients of images are added up in
// the order of results, for some channels of an image at a time, in twice the precision.
#include <cmath>

#include "core/compute.h"
#include "core/parallel.h"
#include "host/rows.h"
#include "ops/image/cpu.h"
#include "ops/image/stored.h"
#include "ops/image/wide_sums.h"
#include "ops/pool/lines.h"

namespace baracuda::image {
namespace {

using pool::kLine;
using pool::LineReader;

inline constexpr int64_t kPoints = 32;    // results whose taps are worked out together
inline constexpr int64_t kAcross = 64;    // channels that are taken together where they are neighbours
inline constexpr int64_t kFewAcross = 8;  // with fewer channels, points are more
inline constexpr int kMostTaps = 64, kAxisTaps = 4;

// Some results next to each other.
struct Run {
  int64_t n, d, h, first, count;
};
// Calls f(run) for all results of an image.
template <class F>
void each_run(int64_t image, const int64_t* size, const F& f) {
  for (int64_t d = 0; d < size[0]; ++d)
    for (int64_t h = 0; h < size[1]; ++h)
      for (int64_t w = 0; w < size[2]; w += kPoints) f(Run{image, d, h, w, std::min(kPoints, size[2] - w)});
}
// The same for all images, by several threads.
template <class F>
void each_run(int64_t images, const int64_t* size, int64_t work, const F& f) {
  const int64_t pieces = (size[2] + kPoints - 1) / kPoints;
  parallel_for(images * size[0] * size[1] * pieces, row_grain(kPoints * work), [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t w = at % pieces * kPoints, row = at / pieces, h = row % size[1], plane = row / size[1];
      f(Run{plane / size[0], plane % size[0], h, w, std::min(kPoints, size[2] - w)});
    }
  });
}

// What the results of a run take along an axis; those outside lie at place 0.
template <class C>
struct AxisTaps {
  int count;
  bool whole;  // nothing is outside
  C part[kPoints], slope[kPoints], weight[kAxisTaps][kPoints];
  int64_t offset[kAxisTaps][kPoints];
  bool inside[kAxisTaps][kPoints];
};
// What they take of an image: taps of the last axis follow one another.
template <class C>
struct RunTaps {
  int count;
  bool whole;
  int64_t offset[kMostTaps][kPoints];
  C weight[kMostTaps][kPoints];
  bool inside[kMostTaps][kPoints];
};

// Calls f(std::integral_constant) for that one of the values which `value` is.
template <int32_t kFirst, int32_t... kMore, class F>
void with_constant(int32_t value, const F& f) {
  if constexpr (sizeof...(kMore) > 0)
    if (value != kFirst) return with_constant<kMore...>(value, f);
  f(std::integral_constant<int32_t, kFirst>());
}

template <class C>
class Taker {
 public:
  // step: of places along the axes.
  Taker(const Sampling& s, const TensorView& grid, const int64_t* step) : sampling_(s), grid_(grid) {
    std::copy_n(step, kAxes, step_);
    for (int i = 0; i < kAxes - s.axes; ++i) only_place(axis_[i]);
  }

  void fill(const Run& run, RunTaps<C>& taps) {
    for (int i = kAxes - sampling_.axes; i < kAxes; ++i) fill_axis(run, i);
    combine(run.count, taps);
  }
  // What a tap's weight becomes by the number of one axis.
  void slopes(int64_t n, int axis, int tap, C* to) const {
    int at[kAxes], rest = tap;
    for (int i = kAxes - 1; i >= 0; --i) at[i] = rest % axis_[i].count, rest /= axis_[i].count;
    std::copy_n(axis_[axis].slope, n, to);
    for (int i = 0; i < kAxes; ++i) {
      const int32_t filter = sampling_.side[i].filter;
      const C* part = axis_[i].part;
      for (int64_t k = 0; k < n; ++k)
        to[k] *= i == axis ? slope_of_tap<C>(filter, part[k], at[i]) : weight_of_tap<C>(filter, part[k], at[i]);
    }
  }

 private:
  // Of an axis that the shape lacks.
  static void only_place(AxisTaps<C>& t) {
    t.count = 1, t.whole = true;
    for (int64_t k = 0; k < kPoints; ++k)
      t.part[k] = t.slope[k] = 0, t.weight[0][k] = 1, t.offset[0][k] = 0, t.inside[0][k] = true;
  }
  void fill_axis(const Run& run, int i) {
    const Side side = sampling_.side[i];
    const int64_t at = grid_.at(run.n, run.d, run.h, run.first) + (kAxes - 1 - i) * grid_.coordinate;
    const LineReader<C> reader(grid_.element, grid_.stride[2], run.count);
    C given[kPoints];
    const C* const g = reader.get(grid_.data + at * size_of(grid_.element), run.count, given);
    // What is known when this is compiled leaves loops without branches, of which vectors are made.
    with_constant<kNearest, kLinear, kCubic>(side.filter, [&](auto filter) {
      with_constant<kZeros, kBorder, kReflection>(
          side.padding, [&](auto padding) { aim<filter, padding>(side, step_[i], run.count, g, axis_[i]); });
    });
  }
  template <int32_t kFilter, int32_t kPadding>
  static void aim(const Side& given, int64_t step, int64_t n, const C* g, AxisTaps<C>& t) {
    const Side side{given.size, kFilter, kPadding, given.align};
    int64_t first[kPoints];
#pragma GCC ivdep
    for (int64_t k = 0; k < n; ++k) {
      const Aim<C> a = aim_at<C>(side, g[k]);
      t.part[k] = a.part, t.slope[k] = a.slope, first[k] = a.first;
    }
    t.count = taps_of(kFilter);
    bool outside = false;
    for (int tap = 0; tap < t.count; ++tap) {
#pragma GCC ivdep
      for (int64_t k = 0; k < n; ++k) {
        const int64_t place = place_of(side, first[k] + tap);
        t.inside[tap][k] = place >= 0, outside |= place < 0;
        t.offset[tap][k] = std::max<int64_t>(place, 0) * step;
        t.weight[tap][k] = weight_of_tap<C>(kFilter, t.part[k], tap);
      }
    }
    t.whole = !outside;
  }
  void combine(int64_t n, RunTaps<C>& taps) const {
    const AxisTaps<C>&a = axis_[0], &b = axis_[1], &c = axis_[2];
    int at = 0;
    for (int i = 0; i < a.count; ++i) {
      for (int j = 0; j < b.count; ++j) {
        for (int k = 0; k < c.count; ++k, ++at) {
#pragma GCC ivdep
          for (int64_t p = 0; p < n; ++p) {
            taps.offset[at][p] = a.offset[i][p] + b.offset[j][p] + c.offset[k][p];
            taps.inside[at][p] = a.inside[i][p] & b.inside[j][p] & c.inside[k][p];
            taps.weight[at][p] = a.weight[i][p] * b.weight[j][p] * c.weight[k][p];
          }
        }
      }
    }
    taps.count = at, taps.whole = a.whole && b.whole && c.whole;
  }

  const Sampling& sampling_;
  const Grid grid_;
  int64_t step_[kAxes];
  AxisTaps<C> axis_[kAxes];
};

// What some results take of a channel by one tap.
template <class E, bool kWhole, class C>
void take(const typename E::Stored* from, const int64_t* offset, const bool* inside, int64_t n, C* to) {
#pragma GCC ivdep
  for (int64_t k = 0; k < n; ++k) {
    const C v = E::load(from[offset[k]]);
    to[k] = kWhole || inside[k] ? v : C(0);
  }
}
template <class E, class C>
void take(const RunTaps<C>& taps, int tap, const char* from, int64_t n, C* to) {
  const auto* const at = reinterpret_cast<const typename E::Stored*>(from);
  if (taps.whole)
    take<E, true>(at, taps.offset[tap], taps.inside[tap], n, to);
  else
    take<E, false>(at, taps.offset[tap], taps.inside[tap], n, to);
}

template <class E>
class Forward {
 public:
  using C = typename E::Number;
  Forward(const Sampling& s, const TensorView& x, const TensorView& grid, const TensorView& y)
      : sampling_(s), grid_(grid), x_(x), y_(y), channels_(x.shape[1]) {}

  void run_all(int64_t images) const {
    const bool across = x_.channels_last() && x_.channel == 1 && channels_ >= kFewAcross;
    each_run(images, y_.size, sampling_.taps() * (channels_ + 4), [&](const Run& run) {
      Taker<C> taker(sampling_, grid_, x_.stride);
      RunTaps<C> taps;
      taker.fill(run, taps);
      if (across)
        points(run, taps);
      else
        for (int64_t c = 0; c < channels_; ++c) channel(run, taps, c);
    });
  }

 private:
  void channel(const Run& run, const RunTaps<C>& taps, int64_t c) const {
    C sum[kPoints];
    const auto* const from = reinterpret_cast<const typename E::Stored*>(x_.at(run.n, c, 0, 0, 0));
    with_constant<1, 2, 4, 8, 16, kMostTaps>(taps.count, [&](auto count) {
      taps.whole ? fold<count, true>(from, taps, run.count, sum) : fold<count, false>(from, taps, run.count, sum);
    });
    store<C>(y_.element, y_.at(run.n, c, run.d, run.h, run.first), y_.stride[2], sum, run.count);
  }
  // Point by point: what is gathered for many of them and stored would be read again before it is in L1.
  template <int kCount, bool kWhole>
  static void fold(const typename E::Stored* from, const RunTaps<C>& taps, int64_t n, C* to) {
    for (int64_t k = 0; k < n; ++k) {
      C sum = 0;
#pragma GCC unroll 16
      for (int t = 0; t < kCount; ++t) {
        const C v = E::load(from[taps.offset[t][k]]);
        sum += taps.weight[t][k] * (kWhole || taps.inside[t][k] ? v : C(0));
      }
      to[k] = sum;
    }
  }
  // Channels that are neighbours in memory, for all points of a run: they are put point by point, or channel by channel
  // where a result's channels lie far apart.
  void points(const Run& run, const RunTaps<C>& taps) const {
    alignas(64) C sums[kPoints * kAcross];
    const bool apart = y_.channel != 1;
    for (int64_t first = 0; first < channels_; first += kAcross) {
      const int64_t n = std::min(kAcross, channels_ - first);
      for (int64_t k = 0; k < run.count; ++k) {
        C* const sum = sums + k * kAcross;
        point(run, taps, k, first, n, sum);
        if (!apart) store<C>(y_.element, y_.at(run.n, first, run.d, run.h, run.first + k), 1, sum, n);
      }
      for (int64_t c = 0; apart && c < n; ++c) {
        C line[kPoints];
        for (int64_t k = 0; k < run.count; ++k) line[k] = sums[k * kAcross + c];
        store<C>(y_.element, y_.at(run.n, first + c, run.d, run.h, run.first), y_.stride[2], line, run.count);
      }
    }
  }
  void point(const Run& run, const RunTaps<C>& taps, int64_t k, int64_t first, int64_t n, C* sum) const {
    std::fill_n(sum, n, C(0));
    const auto* const from = reinterpret_cast<const typename E::Stored*>(x_.at(run.n, first, 0, 0, 0));
    for (int t = 0; t < taps.count; ++t) {
      if (!taps.inside[t][k]) continue;
      const auto* const row = from + taps.offset[t][k];
      const C weight = taps.weight[t][k];
#pragma GCC ivdep
      for (int64_t c = 0; c < n; ++c) sum[c] += weight * E::load(row[c]);
    }
  }

  const Sampling& sampling_;
  const TensorView& grid_;
  const Planes x_, y_;
  const int64_t channels_;
};

// The gradient by the grid: sums over channels for each tap first.
template <class E>
class Grids {
 public:
  using C = typename E::Number;
  Grids(const Sampling& s, const TensorView& dy, const TensorView& x, const TensorView& grid, const TensorView& dgrid)
      : sampling_(s), grid_(grid), dgrid_(dgrid), dy_(dy), x_(x), channels_(x.shape[1]) {}

  void run_all(int64_t images) const {
    each_run(images, dy_.size, sampling_.taps() * (channels_ + 4), [&](const Run& run) {
      Taker<C> taker(sampling_, grid_, x_.stride);
      RunTaps<C> taps;
      taker.fill(run, taps);
      C sum[kMostTaps][kPoints] = {};
      for (int64_t c = 0; c < channels_; c += kBlock) add(run, taps, c, std::min(channels_, c + kBlock), sum);
      write(run, taker, taps.count, sum);
    });
  }

 private:
  static constexpr int64_t kBlock = 256;  // sums of so many channels are added up, which bounds their error

  void add(const Run& run, const RunTaps<C>& taps, int64_t begin, int64_t end, C (*sum)[kPoints]) const {
    C part[kMostTaps][kPoints] = {}, given[kPoints], taken[kPoints];
    const LineReader<C> reader(dy_.element, dy_.stride[2], run.count);
    for (int64_t c = begin; c < end; ++c) {
      const C* const dy = reader.get(dy_.at(run.n, c, run.d, run.h, run.first), run.count, given);
      const char* const from = x_.at(run.n, c, 0, 0, 0);
      for (int t = 0; t < taps.count; ++t) {
        take<E>(taps, t, from, run.count, taken);
        for (int64_t k = 0; k < run.count; ++k) part[t][k] += dy[k] * taken[k];
      }
    }
    for (int t = 0; t < taps.count; ++t)
      for (int64_t k = 0; k < run.count; ++k) sum[t][k] += part[t][k];
  }
  void write(const Run& run, const Taker<C>& taker, int taps, const C (*sum)[kPoints]) const {
    const int64_t at = dgrid_.at(run.n, run.d, run.h, run.first);
    for (int i = kAxes - sampling_.axes; i < kAxes; ++i) {
      C found[kPoints] = {}, slope[kPoints];
      for (int t = 0; t < taps && sampling_.side[i].filter != kNearest; ++t) {
        taker.slopes(run.count, i, t, slope);
        for (int64_t k = 0; k < run.count; ++k) found[k] += sum[t][k] * slope[k];
      }
      const int64_t to = at + (kAxes - 1 - i) * dgrid_.coordinate;
      store<C>(dgrid_.element, const_cast<char*>(dgrid_.data) + to * size_of(dgrid_.element), dgrid_.stride[2], found,
               run.count);
    }
  }

  const Sampling& sampling_;
  const TensorView& grid_;
  const Grid dgrid_;
  const Planes dy_, x_;
  const int64_t channels_;
};

// The gradient by the image.
template <class C>
class Images {
 public:
  Images(const Sampling& s, const TensorView& dy, const TensorView& grid, const TensorView& dx, Wide<C>* sums)
      : sampling_(s), grid_(grid), dy_(dy), dx_(dx), channels_(dx.shape[1]), sums_(sums) {}

  void run_all(int64_t images) const {
    const int64_t blocks = (channels_ + kSummed - 1) / kSummed;
    parallel_for(images * blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % blocks * kSummed;
        block(i / blocks, first, std::min(kSummed, channels_ - first));
      }
    });
  }

 private:
  // Channels [first, first + m) of an image, whose sums lie next to each other at each place.
  void block(int64_t image, int64_t first, int64_t m) const {
    const int64_t places = sampling_.places();
    Wide<C>* const sums = sums_ + (image * channels_ + first) * places;
    std::fill_n(sums, places * m, Wide<C>{});
    const int64_t step[kAxes] = {dx_.size[1] * dx_.size[2] * m, dx_.size[2] * m, m};
    Taker<C> taker(sampling_, grid_, step);
    RunTaps<C> taps;
    each_run(image, dy_.size, [&](const Run& run) {
      taker.fill(run, taps);
      C given[kSummed][kPoints];
      for (int64_t c = 0; c < m; ++c)
        load<C>(dy_.element, dy_.at(image, first + c, run.d, run.h, run.first), dy_.stride[2], given[c], run.count);
      for (int64_t k = 0; k < run.count; ++k)
        for (int t = 0; t < taps.count; ++t)
          if (taps.inside[t][k]) spread(taps.weight[t][k], k, given, m, sums + taps.offset[t][k]);
    });
    write_sums<C>(dx_, image, first, m, sums);
  }
  void spread(C weight, int64_t k, const C (*given)[kPoints], int64_t m, Wide<C>* to) const {
    for (int64_t c = 0; c < m; ++c) to[c].add(weight * given[c][k]);
  }

  const Sampling& sampling_;
  const TensorView& grid_;
  const Planes dy_, dx_;
  const int64_t channels_;
  Wide<C>* const sums_;
};

}  // namespace

void run_sample(const Sampling& s, const TensorView& x, const TensorView& grid, const TensorView& y) {
  const Planes image(x);
  const bool across = image.channels_last() && image.channel == 1 && x.shape[1] >= kFewAcross;
  if (!across && run_flat_sample(s, x, grid, y)) return;
  with_stored(x.element, [&](auto e) { Forward<decltype(e)>(s, x, grid, y).run_all(x.shape[0]); });
}
void run_sample_images(const Sampling& s, const TensorView& dy, const TensorView& grid, const TensorView& dx,
                       void* sums) {
  with_float_type(dx.element, [&](auto c) {
    using C = decltype(c);
    Images<C>(s, dy, grid, dx, static_cast<Wide<C>*>(sums)).run_all(dx.shape[0]);
  });
}
void run_sample_grids(const Sampling& s, const TensorView& dy, const TensorView& x, const TensorView& grid,
                      const TensorView& dgrid) {
  with_stored(x.element, [&](auto e) { Grids<decltype(e)>(s, dy, x, grid, dgrid).run_all(x.shape[0]); });
}

}  // namespace baracuda::image
