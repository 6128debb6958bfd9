// Pooling and its gradients on GPUs: a thread for each result, and, backward, for each place, which gathers.
#pragma once
#include "ops/pool/blocked_sum.h"
#include "ops/pool/window.h"
#include "simt/space.h"

namespace baracuda::pool {

// What threads go along: what is made, the planes of what is read, and the coordinates of three axes.
enum : int { kMade = 0, kSecond = 1, kRead = 2, kReadSecond = 3, kPlace = 4, kWalked = 7 };

struct PoolParams {
  simt::Space<kWalked> space;
  Axis axis[3];
  int64_t stride[3], second_stride[3];  // along the axes, of what is read
  int64_t divisor, least;               // least: bits of the smallest value that there is
  BCU_GLOBAL void* made;
  BCU_GLOBAL void* indices;  // written forward, read backward; null: none
  BCU_GLOBAL const void* read;
  int32_t made_element, read_element, padded;
};

BCU_DEVICE Axis axis_of(BCU_CONSTANT PoolParams& p, int i) {
  Axis a;
  a.in = p.axis[i].in, a.out = p.axis[i].out, a.taps = p.axis[i].taps, a.stride = p.axis[i].stride;
  a.low = p.axis[i].low, a.high = p.axis[i].high, a.dilation = p.axis[i].dilation;
  return a;
}
BCU_DEVICE int64_t places_of(BCU_CONSTANT PoolParams& p, Window d, Window h, Window w) {
  if (p.divisor != 0) return p.divisor;
  return p.padded != 0 ? d.size * h.size * w.size : d.count * h.count * w.count;
}
BCU_DEVICE int64_t position_in(BCU_CONSTANT PoolParams& p, int64_t d, int64_t h, int64_t w) {
  return (d * p.axis[1].in + h) * p.axis[2].in + w;
}

// Each body has one(p, where), where `where` are the offsets and coordinates of what a thread makes.
#define BCU_POOL_RUN                                                                                    \
  enum : int { kThreads = 256, kBlocks = 1, kShared = 0 };                                              \
  using Params = PoolParams;                                                                            \
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) { \
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();                                                  \
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) {     \
      int64_t where[kWalked];                                                                           \
      simt::locate(p.space, i, where);                                                                  \
      one(p, where);                                                                                    \
    }                                                                                                   \
  }

// The first of the largest, or the last NaN, and its position in the plane.
template <class C>
struct MaxPool {
  BCU_DEVICE void one(BCU_CONSTANT PoolParams& p, BCU_THREAD const int64_t* where) {
    Window d = window_of(axis_of(p, 0), where[kPlace]), h = window_of(axis_of(p, 1), where[kPlace + 1]);
    Window w = window_of(axis_of(p, 2), where[kPlace + 2]);
    C most = simt::from_bits<C>(p.least);
    int64_t at = d.count * h.count * w.count > 0 ? position_in(p, d.begin, h.begin, w.begin) : 0;
    for (int64_t i = 0; i < d.count; ++i) {
      for (int64_t j = 0; j < h.count; ++j) {
        for (int64_t k = 0; k < w.count; ++k) {
          int64_t x = d.begin + i * d.step, y = h.begin + j * h.step, z = w.begin + k * w.step;
          int64_t from = where[kRead] + x * p.stride[0] + y * p.stride[1] + z * p.stride[2];
          C v = simt::load_element<C>(p.read, p.read_element, from);
          bool better = v > most || v != v;
          most = better ? v : most;
          at = better ? position_in(p, x, y, z) : at;
        }
      }
    }
    simt::store_element(p.made, p.made_element, where[kMade], most);
    if (p.indices) ((BCU_GLOBAL int64_t*)p.indices)[where[kSecond]] = at;
  }
  BCU_POOL_RUN
};

template <class C>
struct MeanPool {
  BCU_DEVICE void one(BCU_CONSTANT PoolParams& p, BCU_THREAD const int64_t* where) {
    Window d = window_of(axis_of(p, 0), where[kPlace]), h = window_of(axis_of(p, 1), where[kPlace + 1]);
    Window w = window_of(axis_of(p, 2), where[kPlace + 2]);
    BlockedSum<C> sum = no_sum<C>();
    for (int64_t i = 0; i < d.count; ++i) {
      for (int64_t j = 0; j < h.count; ++j) {
        for (int64_t k = 0; k < w.count; ++k) {
          int64_t from = where[kRead] + (d.begin + i) * p.stride[0] + (h.begin + j) * p.stride[1];
          sum.add(simt::load_element<C>(p.read, p.read_element, from + (w.begin + k) * p.stride[2]));
        }
      }
    }
    C mean = (sum.total + sum.part) / C(places_of(p, d, h, w));
    simt::store_element(p.made, p.made_element, where[kMade], mean);
  }
  BCU_POOL_RUN
};

// Of means, or, with kMax, of maxima.
template <class C, bool kMax>
struct PoolGradient {
  BCU_DEVICE void one(BCU_CONSTANT PoolParams& p, BCU_THREAD const int64_t* where) {
    int64_t x = where[kPlace], y = where[kPlace + 1], z = where[kPlace + 2], me = position_in(p, x, y, z);
    Range ds = results_of(axis_of(p, 0), x), hs = results_of(axis_of(p, 1), y), ws = results_of(axis_of(p, 2), z);
    BlockedSum<C> sum = no_sum<C>();
    for (int64_t i = ds.first; i <= ds.last; ++i) {
      Window d = window_of(axis_of(p, 0), i);
      if (!holds(d, x)) continue;
      for (int64_t j = hs.first; j <= hs.last; ++j) {
        Window h = window_of(axis_of(p, 1), j);
        if (!holds(h, y)) continue;
        for (int64_t k = ws.first; k <= ws.last; ++k) {
          Window w = window_of(axis_of(p, 2), k);
          if (!holds(w, z)) continue;
          int64_t from = where[kRead] + i * p.stride[0] + j * p.stride[1] + k * p.stride[2];
          int64_t second =
              where[kReadSecond] + i * p.second_stride[0] + j * p.second_stride[1] + k * p.second_stride[2];
          if (kMax && ((BCU_GLOBAL const int64_t*)p.indices)[second] != me) continue;
          C v = simt::load_element<C>(p.read, p.read_element, from);
          sum.add(kMax ? v : v / C(places_of(p, d, h, w)));
        }
      }
    }
    simt::store_element(p.made, p.made_element, where[kMade], sum.total + sum.part);
  }
  BCU_POOL_RUN
};
#undef BCU_POOL_RUN

}  // namespace baracuda::pool
