// Resizing and its gradients on GPUs: a thread for each entry of the tables, then one for each place that is made.
#pragma once
#include "ops/image/taps.h"
#include "simt/space.h"

namespace baracuda::image {

BCU_DEVICE Map map_of(BCU_CONSTANT Map& given) {
  Map m;
  m.in = given.in, m.out = given.out, m.start = given.start, m.step = given.step, m.den = given.den;
  return m;
}

// The tables of three axes: results first, then, for gradients, places.
template <class C>
struct FillTaps {
  enum : int { kThreads = 128, kBlocks = 1, kShared = 0 };
  struct Params {
    Map map[3];
    Taps<C> taps[3];
    int64_t count;
    int64_t a;  // bits
    int32_t kind, rounded, antialias;
  };
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    Filter f;
    f.kind = p.kind, f.rounded = p.rounded, f.antialias = p.antialias;
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t at = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); at < p.count; at += step) {
      int64_t rest = at;
      BCU_NO_UNROLL for (int i = 0; i < 3; ++i) {
        int64_t results = p.taps[i].pitch, places = p.taps[i].begin ? p.taps[i].in : 0;
        if (rest >= 0 && rest < results) fill_result<C>(map_of(p.map[i]), f, simt::from_bits<C>(p.a), p.taps[i], rest);
        rest -= results;
        if (rest >= 0 && rest < places) fill_place<C>(map_of(p.map[i]), f, p.taps[i], rest);
        rest -= places;
      }
    }
  }
};

// What threads go along: what is made, the planes of what is read, and the coordinates of three axes.
enum : int { kMade = 0, kRead = 1, kPlace = 2, kWalked = 5 };

template <class C>
struct ResizeParams {
  simt::Space<kWalked> space;
  Taps<C> taps[3];
  int64_t stride[3];  // along the axes, of what is read
  BCU_GLOBAL void* made;
  BCU_GLOBAL const void* read;
  int32_t made_element, read_element;
};

#define BCU_RESIZE_RUN                                                                                  \
  enum : int { kThreads = 256, kBlocks = 1, kShared = 0 };                                              \
  using Params = ResizeParams<Weight>;                                                                  \
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) { \
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();                                                  \
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) {     \
      int64_t where[kWalked];                                                                           \
      simt::locate(p.space, i, where);                                                                  \
      one(p, where);                                                                                    \
    }                                                                                                   \
  }

// What place r of the tensor that is made takes of an axis: places at(r, k) of the other, k < count, and how much.
template <class C, bool kBack>
struct Taken {
  BCU_DEVICE int64_t count(BCU_CONSTANT Taps<C>& t, int64_t r) { return kBack ? t.end[r] - t.begin[r] : t.count[r]; }
  BCU_DEVICE int64_t at(BCU_CONSTANT Taps<C>& t, int64_t r, int64_t k) {
    return kBack ? t.begin[r] + k : clamped(t.first[r] + k, 0, t.in - 1);
  }
  BCU_DEVICE C weight(BCU_CONSTANT Taps<C>& t, int64_t r, int64_t k) {
    return kBack ? weight_of<C>(t, t.begin[r] + k, r) : t.weight[r * t.by_result + k * t.by_tap];
  }
};

template <class C, bool kBack>
struct ResizeBody {
  using Weight = C;
  using T = Taken<C, kBack>;
  BCU_DEVICE void one(BCU_CONSTANT ResizeParams<C>& p, BCU_THREAD const int64_t* where) {
    int64_t at_d = where[kPlace], at_h = where[kPlace + 1], at_w = where[kPlace + 2];
    int64_t ds = T::count(p.taps[0], at_d), hs = T::count(p.taps[1], at_h), ws = T::count(p.taps[2], at_w);
    pool::BlockedSum<C> sum = pool::no_sum<C>();
    BCU_NO_UNROLL for (int64_t d = 0; d < ds; ++d) {
      C weight_d = T::weight(p.taps[0], at_d, d);
      int64_t plane = where[kRead] + T::at(p.taps[0], at_d, d) * p.stride[0];
      BCU_NO_UNROLL for (int64_t h = 0; h < hs; ++h) {
        C weight_h = weight_d * T::weight(p.taps[1], at_h, h);
        int64_t row = plane + T::at(p.taps[1], at_h, h) * p.stride[1];
        BCU_NO_UNROLL for (int64_t w = 0; w < ws; ++w) {
          C v = simt::load_element<C>(p.read, p.read_element, row + T::at(p.taps[2], at_w, w) * p.stride[2]);
          sum.add(weight_h * T::weight(p.taps[2], at_w, w) * v);
        }
      }
    }
    simt::store_element(p.made, p.made_element, where[kMade], sum.total + sum.part);
  }
  BCU_RESIZE_RUN
};

// Tables without weights are of one kind.
template <class C>
struct NearestBody {
  using Weight = float;
  BCU_DEVICE void one(BCU_CONSTANT ResizeParams<float>& p, BCU_THREAD const int64_t* where) {
    int64_t from = where[kRead];
    BCU_UNROLL for (int i = 0; i < 3; ++i) from += p.taps[i].first[where[kPlace + i]] * p.stride[i];
    simt::store_element(p.made, p.made_element, where[kMade], simt::load_element<C>(p.read, p.read_element, from));
  }
  BCU_RESIZE_RUN
};
#undef BCU_RESIZE_RUN

}  // namespace baracuda::image
