// Sampling by a grid and its gradients on GPUs: a thread for each result; what an image is given back is sorted by its
// place, so that each has one writer.
#pragma once
#include "ops/image/sample.h"
#include "simt/pair_sum.h"
#include "simt/sorted_fold.h"
#include "simt/space.h"

namespace baracuda::image {

// What threads go along: what is made, the image or the number of its first place, the grid, and dy.
enum : int { kSampled = 0, kImage = 1, kGrid = 2, kGiven = 3, kSampleWalked = 4 };

struct SampleParams {
  simt::Space<kSampleWalked> space;
  Side side[3];
  int64_t step[3];                                                              // of places along the axes
  int64_t coordinate, channels, image_channel, given_channel, made_coordinate;  // channels: how many; else strides
  BCU_GLOBAL void* made;
  BCU_GLOBAL const void* image;
  BCU_GLOBAL const void* grid;
  BCU_GLOBAL const void* given;
  BCU_GLOBAL simt::Entry* entries;
  BCU_GLOBAL void* weights;
  int64_t places;  // of all images, which is what a tap outside gets
  int32_t element, axes;
};

BCU_DEVICE Side side_of(BCU_CONSTANT SampleParams& p, int i) {
  Side s;
  s.size = p.side[i].size, s.filter = p.side[i].filter, s.padding = p.side[i].padding, s.align = p.side[i].align;
  return s;
}
template <class C>
BCU_DEVICE Aim<C> aim_of(BCU_CONSTANT SampleParams& p, int64_t grid, int i) {
  C g = C(0);
  if (i >= 3 - p.axes) g = simt::load_element<C>(p.grid, p.element, grid + (2 - i) * p.coordinate);
  return aim_at<C>(side_of(p, i), g);
}
BCU_DEVICE int32_t taps_along(BCU_CONSTANT SampleParams& p, int i) { return taps_of(p.side[i].filter); }

#define BCU_SAMPLE_RUN                                                                                  \
  enum : int { kThreads = 256, kBlocks = 1, kShared = 0 };                                              \
  using Params = SampleParams;                                                                          \
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) { \
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();                                                  \
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) {     \
      int64_t where[kSampleWalked];                                                                     \
      simt::locate(p.space, i, where);                                                                  \
      one(p, i, where);                                                                                 \
    }                                                                                                   \
  }

// One tap after another, by their numbers along the axes.
#define BCU_EACH_TAP(p)                                               \
  BCU_NO_UNROLL for (int32_t k0 = 0; k0 < taps_along(p, 0); ++k0)     \
      BCU_NO_UNROLL for (int32_t k1 = 0; k1 < taps_along(p, 1); ++k1) \
          BCU_NO_UNROLL for (int32_t k2 = 0; k2 < taps_along(p, 2); ++k2)

struct Tap {
  int64_t d, h, w;
  BCU_METHOD bool inside() const { return d >= 0 && h >= 0 && w >= 0; }
};
template <class C>
BCU_DEVICE Tap tap_at(BCU_CONSTANT SampleParams& p, Aim<C> a0, Aim<C> a1, Aim<C> a2, int32_t k0, int32_t k1,
                      int32_t k2) {
  Tap t;
  t.d = place_of(side_of(p, 0), a0.first + k0), t.h = place_of(side_of(p, 1), a1.first + k1);
  t.w = place_of(side_of(p, 2), a2.first + k2);
  return t;
}
template <class C>
BCU_DEVICE C weight_along(BCU_CONSTANT SampleParams& p, Aim<C> a, int i, int32_t k) {
  return weight_of_tap<C>(p.side[i].filter, a.part, k);
}
template <class C>
BCU_DEVICE C slope_along(BCU_CONSTANT SampleParams& p, Aim<C> a, int i, int32_t k) {
  return a.slope * slope_of_tap<C>(p.side[i].filter, a.part, k);
}

template <class C>
struct SampleImage {
  BCU_DEVICE void one(BCU_CONSTANT SampleParams& p, int64_t, BCU_THREAD const int64_t* where) {
    Aim<C> a0 = aim_of<C>(p, where[kGrid], 0), a1 = aim_of<C>(p, where[kGrid], 1), a2 = aim_of<C>(p, where[kGrid], 2);
    C sum = C(0);
    BCU_EACH_TAP(p) {
      Tap t = tap_at(p, a0, a1, a2, k0, k1, k2);
      if (!t.inside()) continue;
      int64_t at = where[kImage] + t.d * p.step[0] + t.h * p.step[1] + t.w * p.step[2];
      C weight = weight_along(p, a0, 0, k0) * weight_along(p, a1, 1, k1) * weight_along(p, a2, 2, k2);
      sum += weight * simt::load_element<C>(p.image, p.element, at);
    }
    simt::store_element(p.made, p.element, where[kSampled], sum);
  }
  BCU_SAMPLE_RUN
};

// The gradient by the grid: a tap's sum over channels first.
template <class C>
struct SampleGrid {
  BCU_DEVICE C over_channels(BCU_CONSTANT SampleParams& p, int64_t image, int64_t given) {
    pool::BlockedSum<C> sum = pool::no_sum<C>();
    BCU_NO_UNROLL for (int64_t c = 0; c < p.channels; ++c) {
      C dy = simt::load_element<C>(p.given, p.element, given + c * p.given_channel);
      sum.add(dy * simt::load_element<C>(p.image, p.element, image + c * p.image_channel));
    }
    return sum.total + sum.part;
  }
  BCU_DEVICE void one(BCU_CONSTANT SampleParams& p, int64_t, BCU_THREAD const int64_t* where) {
    Aim<C> a0 = aim_of<C>(p, where[kGrid], 0), a1 = aim_of<C>(p, where[kGrid], 1), a2 = aim_of<C>(p, where[kGrid], 2);
    C d0 = C(0), d1 = C(0), d2 = C(0);
    BCU_EACH_TAP(p) {
      Tap t = tap_at(p, a0, a1, a2, k0, k1, k2);
      if (!t.inside() || p.side[2].filter == kNearest) continue;
      int64_t at = where[kImage] + t.d * p.step[0] + t.h * p.step[1] + t.w * p.step[2];
      C sum = over_channels(p, at, where[kGiven]);
      C w0 = weight_along(p, a0, 0, k0), w1 = weight_along(p, a1, 1, k1), w2 = weight_along(p, a2, 2, k2);
      d0 += sum * (slope_along(p, a0, 0, k0) * w1 * w2);
      d1 += sum * (slope_along(p, a1, 1, k1) * w0 * w2);
      d2 += sum * (slope_along(p, a2, 2, k2) * w0 * w1);
    }
    simt::store_element(p.made, p.element, where[kSampled], d2);
    if (p.axes > 1) simt::store_element(p.made, p.element, where[kSampled] + p.made_coordinate, d1);
    if (p.axes > 2) simt::store_element(p.made, p.element, where[kSampled] + 2 * p.made_coordinate, d0);
  }
  BCU_SAMPLE_RUN
};

template <class C>
struct ClearImage {
  BCU_DEVICE void one(BCU_CONSTANT SampleParams& p, int64_t, BCU_THREAD const int64_t* where) {
    simt::store_element(p.made, p.element, where[kSampled], C(0));
  }
  BCU_SAMPLE_RUN
};

// The taps of all results as entries, and their weights.
template <class C>
struct SampleTaps {
  BCU_DEVICE void one(BCU_CONSTANT SampleParams& p, int64_t i, BCU_THREAD const int64_t* where) {
    Aim<C> a0 = aim_of<C>(p, where[kGrid], 0), a1 = aim_of<C>(p, where[kGrid], 1), a2 = aim_of<C>(p, where[kGrid], 2);
    int64_t at = i * taps_along(p, 0) * taps_along(p, 1) * taps_along(p, 2);
    BCU_EACH_TAP(p) {
      Tap t = tap_at(p, a0, a1, a2, k0, k1, k2);
      simt::Entry e;
      e.id = t.inside() ? where[kImage] + t.d * p.step[0] + t.h * p.step[1] + t.w * p.step[2] : p.places;
      e.position = at;
      p.entries[at] = e;
      ((BCU_GLOBAL C*)p.weights)[at] =
          weight_along(p, a0, 0, k0) * weight_along(p, a1, 1, k1) * weight_along(p, a2, 2, k2);
      ++at;
    }
  }
  BCU_SAMPLE_RUN
};
#undef BCU_EACH_TAP
#undef BCU_SAMPLE_RUN

struct SpreadTapsParams {
  simt::SortedParams sorted;
  simt::Space<1> given, places;  // dy by result, dx by place: their first channels
  int64_t taps, given_channel, made_channel;
  BCU_GLOBAL const void* from;
  BCU_GLOBAL const void* weights;
  BCU_GLOBAL void* made;
  int32_t element;
};

// The job of simt::fold_sorted: columns are channels.
template <class C>
struct SpreadTaps {
  using Params = SpreadTapsParams;
  using Term = C;
  using Column = int64_t;
  using Sums = simt::PairSum<C>;
  using State = typename Sums::Sum;
  enum : int { kAhead = 4 };

  BCU_DEVICE int64_t column(BCU_CONSTANT Params&, int64_t at) { return at; }
  BCU_DEVICE C term(BCU_CONSTANT Params& p, int64_t entry, int64_t column) {
    int64_t position = p.sorted.entries[entry].position, from[1];
    simt::locate(p.given, position / p.taps, from);
    C dy = simt::load_element<C>(p.from, p.element, from[0] + column * p.given_channel);
    return ((BCU_GLOBAL const C*)p.weights)[position] * dy;
  }
  BCU_DEVICE State start(BCU_CONSTANT Params&, C v) { return Sums::start(v); }
  BCU_DEVICE void add(BCU_CONSTANT Params&, BCU_THREAD State& s, C v) { Sums::add(s, v); }
  BCU_DEVICE void merge(BCU_CONSTANT Params&, BCU_THREAD State& s, BCU_THREAD const State& run) { Sums::merge(s, run); }
  BCU_DEVICE bool own(BCU_CONSTANT Params&, int64_t, int64_t, BCU_THREAD State&) { return false; }
  BCU_DEVICE void store(BCU_CONSTANT Params& p, int64_t entry, int64_t column, BCU_THREAD const State& s) {
    int64_t to[1];
    simt::locate(p.places, p.sorted.entries[entry].id, to);
    simt::store_element(p.made, p.element, to[0] + column * p.made_channel, Sums::value(s));
  }
};

}  // namespace baracuda::image
