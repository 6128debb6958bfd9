// Windows added up on GPUs: a thread for each place, which gathers from the windows that hold it.
#pragma once
#include "ops/pool/blocked_sum.h"
#include "ops/pool/window.h"
#include "simt/space.h"

namespace baracuda::image {

enum : int { kFolded = 0, kColumns = 1, kFoldPlace = 2, kFoldWalked = 5 };

struct FoldParams {
  simt::Space<kFoldWalked> space;  // y, the first tap of its channel in x, and the coordinates of three axes
  pool::Axis axis[3];
  int64_t tap, window;  // strides of x
  BCU_GLOBAL void* made;
  BCU_GLOBAL const void* read;
  int32_t element;
};

BCU_DEVICE pool::Axis fold_axis(BCU_CONSTANT FoldParams& p, int i) {
  pool::Axis a;
  a.in = p.axis[i].in, a.out = p.axis[i].out, a.taps = p.axis[i].taps, a.stride = p.axis[i].stride;
  a.low = p.axis[i].low, a.high = p.axis[i].high, a.dilation = p.axis[i].dilation;
  return a;
}
// The tap of window o that lies at a place; -1: none.
BCU_DEVICE int64_t tap_of(BCU_CONSTANT FoldParams& p, int i, int64_t place, int64_t o) {
  int64_t from = place + p.axis[i].low - o * p.axis[i].stride;
  return from % p.axis[i].dilation == 0 ? from / p.axis[i].dilation : -1;
}

template <class C>
struct FoldWindows {
  enum : int { kThreads = 256, kBlocks = 1, kShared = 0 };
  using Params = FoldParams;

  BCU_DEVICE C one(BCU_CONSTANT FoldParams& p, BCU_THREAD const int64_t* where) {
    int64_t d = where[kFoldPlace], h = where[kFoldPlace + 1], w = where[kFoldPlace + 2];
    pool::Range ds = pool::results_of(fold_axis(p, 0), d), hs = pool::results_of(fold_axis(p, 1), h);
    pool::Range ws = pool::results_of(fold_axis(p, 2), w);
    pool::BlockedSum<C> sum = pool::no_sum<C>();
    for (int64_t i = ds.first; i <= ds.last; ++i) {
      int64_t ti = tap_of(p, 0, d, i);
      if (ti < 0) continue;
      for (int64_t j = hs.first; j <= hs.last; ++j) {
        int64_t tj = tap_of(p, 1, h, j);
        if (tj < 0) continue;
        int64_t tap = (ti * p.axis[1].taps + tj) * p.axis[2].taps, row = (i * p.axis[1].out + j) * p.axis[2].out;
        for (int64_t k = ws.first; k <= ws.last; ++k) {
          int64_t tk = tap_of(p, 2, w, k);
          if (tk < 0) continue;
          int64_t at = where[kColumns] + (tap + tk) * p.tap + (row + k) * p.window;
          sum.add(simt::load_element<C>(p.read, p.element, at));
        }
      }
    }
    return sum.total + sum.part;
  }
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) {
      int64_t where[kFoldWalked];
      simt::locate(p.space, i, where);
      simt::store_element(p.made, p.element, where[kFolded], one(p, where));
    }
  }
};

}  // namespace baracuda::image
