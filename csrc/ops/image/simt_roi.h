// Means over the samples of regions' bins on GPUs: a thread for each result, and, backward, for each place, which
// gathers from all regions of its image.
#pragma once
#include "ops/image/roi.h"
#include "ops/image/roi_pool.h"
#include "simt/space.h"

namespace baracuda::image {

// What threads go along: what is made, the first places of what is read, and coordinates: of y region, bin and bin; of
// dx image, row and column.
enum : int { kRoiMade = 0, kRoiRead = 1, kRoiFirst = 2, kRoiWalked = 5 };

struct RoiParams {
  simt::Space<kRoiWalked> space;
  RegionSide side[2];
  int64_t images, regions, roi_stride, roi_number;
  int64_t read_outer, read_row, read_column;  // strides of x, or of dy: regions, bins
  int64_t scale;                              // bits
  BCU_GLOBAL void* made;
  BCU_GLOBAL const void* read;
  BCU_GLOBAL const void* rois;
  BCU_GLOBAL simt::Fault* fault;
  int64_t row;
  int32_t element, made_element, tensor;
};

BCU_DEVICE RegionSide roi_side(BCU_CONSTANT RoiParams& p, int i) {
  RegionSide s;
  s.size = p.side[i].size, s.bins = p.side[i].bins, s.samples = p.side[i].samples, s.aligned = p.side[i].aligned;
  return s;
}
template <class C>
BCU_DEVICE C roi_at(BCU_CONSTANT RoiParams& p, int64_t k, int i) {
  return simt::load_element<C>(p.rois, p.element, k * p.roi_stride + i * p.roi_number);
}
// The image of a region; -1: there is none such.
template <class C>
BCU_DEVICE int64_t image_of(BCU_CONSTANT RoiParams& p, int64_t k) {
  C n = roi_at<C>(p, k, 0);
  return n > C(-1) && n < C(p.images) ? int64_t(n) : -1;
}
template <class C>
BCU_DEVICE Region<C> roi_along(BCU_CONSTANT RoiParams& p, int64_t k, int axis) {
  return region_of<C>(roi_side(p, axis), roi_at<C>(p, k, 2 - axis), roi_at<C>(p, k, 4 - axis),
                      simt::from_bits<C>(p.scale));
}

// Regions of images that there are not.
template <class C>
struct CheckRois {
  enum : int { kThreads = 256, kBlocks = 1, kShared = 0 };
  using Params = RoiParams;
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t k = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); k < p.regions; k += step) {
      if (image_of<C>(p, k) >= 0) continue;
      C given = roi_at<C>(p, k, 0);
      if (given - given == C(0))
        simt::raise(p.fault, p.row, p.tensor, 5 * k, int64_t(held(given, C(-1e18), C(1e18))), p.images);
      else
        simt::raise_value(p.fault, p.row, p.tensor, 5 * k, given, simt::kFinite);
    }
  }
};

#define BCU_ROI_RUN                                                                                     \
  enum : int { kThreads = 256, kBlocks = 1, kShared = 0 };                                              \
  using Params = RoiParams;                                                                             \
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) { \
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();                                                  \
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) {     \
      int64_t where[kRoiWalked];                                                                        \
      simt::locate(p.space, i, where);                                                                  \
      simt::store_element(p.made, p.made_element, where[kRoiMade], one(p, where));                      \
    }                                                                                                   \
  }

template <class C>
struct RoiMean {
  BCU_DEVICE C four(BCU_CONSTANT RoiParams& p, int64_t at, Beside<C> y, Beside<C> x) {
    int64_t low = at + y.low * p.read_row, high = at + y.high * p.read_row;
    int64_t a = x.low * p.read_column, b = x.high * p.read_column;
    C top = x.of_low * simt::load_element<C>(p.read, p.element, low + a) +
            x.of_high * simt::load_element<C>(p.read, p.element, low + b);
    C bottom = x.of_low * simt::load_element<C>(p.read, p.element, high + a) +
               x.of_high * simt::load_element<C>(p.read, p.element, high + b);
    return y.of_low * top + y.of_high * bottom;
  }
  BCU_DEVICE C one(BCU_CONSTANT RoiParams& p, BCU_THREAD const int64_t* where) {
    int64_t k = where[kRoiFirst], image = image_of<C>(p, k);
    if (image < 0) return C(0);
    Region<C> h = roi_along<C>(p, k, 0), w = roi_along<C>(p, k, 1);
    int64_t row = where[kRoiFirst + 1], column = where[kRoiFirst + 2], at = where[kRoiRead] + image * p.read_outer;
    SampleRange ys = samples_inside(roi_side(p, 0), h, row), xs = samples_inside(roi_side(p, 1), w, column);
    pool::BlockedSum<C> sum = pool::no_sum<C>();
    BCU_NO_UNROLL for (int64_t i = ys.begin; i < ys.end; ++i) {
      Beside<C> y = beside(roi_side(p, 0), sample_at(h, row, i));
      BCU_NO_UNROLL for (int64_t j = xs.begin; y.low >= 0 && j < xs.end; ++j) {
        Beside<C> x = beside(roi_side(p, 1), sample_at(w, column, j));
        if (x.low >= 0) sum.add(four(p, at, y, x));
      }
    }
    return (sum.total + sum.part) / samples_of(h, w);
  }
  BCU_ROI_RUN
};

// The place of the largest value of a bin, -1 in one without places, and that value.
template <class C>
BCU_DEVICE Places pooled_places(BCU_CONSTANT RoiParams& p, int axis, int64_t k, int64_t bin) {
  return places_of<C>(roi_at<C>(p, k, 2 - axis), roi_at<C>(p, k, 4 - axis), simt::from_bits<C>(p.scale),
                      p.side[axis].bins, p.side[axis].size, bin);
}
template <class C>
BCU_DEVICE int64_t most_of_bin(BCU_CONSTANT RoiParams& p, BCU_THREAD const int64_t* where, BCU_THREAD C& best) {
  int64_t k = where[kRoiFirst], image = image_of<C>(p, k), found = -1;
  best = C(0);
  if (image < 0) return found;
  Places rows = pooled_places<C>(p, 0, k, where[kRoiFirst + 1]);
  Places columns = pooled_places<C>(p, 1, k, where[kRoiFirst + 2]);
  int64_t from = where[kRoiRead] + image * p.read_outer;
  BCU_NO_UNROLL for (int64_t h = rows.begin; h < rows.end; ++h) {
    BCU_NO_UNROLL for (int64_t w = columns.begin; w < columns.end; ++w) {
      C v = simt::load_element<C>(p.read, p.element, from + h * p.read_row + w * p.read_column);
      if (!wins(v, best, found < 0)) continue;
      best = v, found = h * p.side[1].size + w;
    }
  }
  return found;
}
template <class C>
struct RoiMost {
  BCU_DEVICE C one(BCU_CONSTANT RoiParams& p, BCU_THREAD const int64_t* where) {
    C best;
    most_of_bin(p, where, best);
    return best;
  }
  BCU_ROI_RUN
};
template <class C>
struct RoiPlace {
  BCU_DEVICE int64_t one(BCU_CONSTANT RoiParams& p, BCU_THREAD const int64_t* where) {
    C best;
    return most_of_bin(p, where, best);
  }
  BCU_ROI_RUN
};

// The gradient: weights of both axes are sums over samples.
template <class C>
struct RoiGradient {
  BCU_DEVICE bool reaches(BCU_CONSTANT RoiParams& p, int axis, Region<C> r, int64_t place) {
    C end = r.start + C(p.side[axis].bins) * r.width, at = C(place);
    return at >= (r.start < end ? r.start : end) - C(2) && at <= (r.start < end ? end : r.start) + C(2);
  }
  BCU_DEVICE C weight(BCU_CONSTANT RoiParams& p, int axis, Region<C> r, int64_t bin, int64_t place) {
    SampleRange range = samples_inside(roi_side(p, axis), r, bin);
    pool::BlockedSum<C> sum = pool::no_sum<C>();
    BCU_NO_UNROLL for (int64_t i = range.begin; i < range.end; ++i) {
      Beside<C> b = beside(roi_side(p, axis), sample_at(r, bin, i));
      if (b.low < 0) continue;
      sum.add((b.low == place ? b.of_low : C(0)) + (b.high == place ? b.of_high : C(0)));
    }
    return sum.total + sum.part;
  }
  BCU_DEVICE C one(BCU_CONSTANT RoiParams& p, BCU_THREAD const int64_t* where) {
    int64_t image = where[kRoiFirst], row = where[kRoiFirst + 1], column = where[kRoiFirst + 2];
    pool::BlockedSum<C> sum = pool::no_sum<C>();
    BCU_NO_UNROLL for (int64_t k = 0; k < p.regions; ++k) {
      if (image_of<C>(p, k) != image) continue;
      Region<C> h = roi_along<C>(p, k, 0), w = roi_along<C>(p, k, 1);
      if (!reaches(p, 0, h, row) || !reaches(p, 1, w, column)) continue;
      C count = samples_of(h, w);
      BCU_NO_UNROLL for (int64_t i = 0; i < p.side[0].bins; ++i) {
        C of_row = weight(p, 0, h, i, row);
        if (of_row == C(0)) continue;
        BCU_NO_UNROLL for (int64_t j = 0; j < p.side[1].bins; ++j) {
          C of_both = of_row * weight(p, 1, w, j, column);
          if (of_both == C(0)) continue;
          int64_t at = where[kRoiRead] + k * p.read_outer + i * p.read_row + j * p.read_column;
          sum.add(simt::load_element<C>(p.read, p.element, at) / count * of_both);
        }
      }
    }
    return sum.total + sum.part;
  }
  BCU_ROI_RUN
};
#undef BCU_ROI_RUN

}  // namespace baracuda::image
