// Reading by index on GPUs, and one-hot rows: a thread per element.
#pragma once
#include "simt/copy_cells.h"
#include "simt/index.h"

namespace baracuda::indexing {

struct CollectParams {
  enum : int { kPlain, kIndexed, kIndex, kPosition, kTensors };
  simt::Space<kTensors> space;
  simt::Space<1> flat;  // the indexed tensor, where indices count through all of it
  simt::IndexParams index;
  BCU_GLOBAL void* to;
  BCU_GLOBAL const void* from;
  int64_t step;  // of one index, in cells
  int32_t is_flat;
};

// Where element i of the space lies; false, with the fault raised, where its index is out of range.
BCU_DEVICE bool find(BCU_CONSTANT CollectParams& p, int64_t i, BCU_THREAD int64_t* offset) {
  int64_t id, place[1];
  simt::locate(p.space, i, offset);
  if (!simt::read_index(p.index, offset[CollectParams::kIndex], offset[CollectParams::kPosition], id)) return false;
  place[0] = id * p.step;
  if (p.is_flat) simt::locate(p.flat, id, place);
  offset[CollectParams::kIndexed] += place[0];
  return true;
}

template <int kBytes>
struct CollectCells {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = CollectParams;
  using Element = simt::Cell<kBytes>;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) {
      int64_t offset[Params::kTensors];
      if (!find(p, i, offset)) continue;
      ((BCU_GLOBAL Element*)p.to)[offset[Params::kPlain]] =
          ((BCU_GLOBAL const Element*)p.from)[offset[Params::kIndexed]];
    }
  }
};

struct OneHotParams {
  enum : int { kY, kIndex, kPosition, kTensors };
  simt::Space<kTensors> space;  // of y; the class is the innermost dimension
  simt::IndexParams index;
  BCU_GLOBAL void* y;
  int64_t classes;
  int32_t element;
};

struct OneHotCells {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = OneHotParams;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) {
      int64_t offset[Params::kTensors], id;
      simt::locate(p.space, i, offset);
      if (!simt::read_index(p.index, offset[Params::kIndex], offset[Params::kPosition], id)) continue;
      simt::store_element(p.y, p.element, offset[Params::kY], int64_t(id == i % p.classes ? 1 : 0));
    }
  }
};

}  // namespace baracuda::indexing
