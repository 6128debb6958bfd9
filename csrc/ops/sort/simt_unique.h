// Each of the values of a line once, on GPUs: of entries that lie in their order, chunks count those that begin a run
// of equal ones; the counts become the number of the first run of each chunk, and then all is written.
#pragma once
#include "ops/sort/simt.h"
#include "simt/chosen.h"

namespace baracuda::sort {

struct UniqueParams {
  simt::Space<1> x;
  BCU_GLOBAL const void* data;
  BCU_GLOBAL const simt::Entry* from;
  BCU_GLOBAL void* values;
  BCU_GLOBAL int64_t* indices;  // null where it is not wanted, as the next two
  BCU_GLOBAL int64_t* inverse;
  BCU_GLOBAL int64_t* counts;
  BCU_GLOBAL int64_t* count;
  BCU_GLOBAL int64_t* places;  // of chunks
  BCU_GLOBAL int64_t* starts;  // of runs
  int64_t n, chunks, capacity;
  int64_t value_stride, index_stride, inverse_stride, count_stride;
  uint64_t nan;  // the key of NaN
  int32_t has_nan, size;
};

// Entries that begin a run; a NaN is equal to nothing.
struct BeginsRun {
  using Params = UniqueParams;
  enum : int { kChunk = kSimtRunChunk };

  BCU_DEVICE bool has(BCU_CONSTANT Params& p, int64_t at) {
    int64_t id = p.from[at].id;
    return at == 0 || id != p.from[at - 1].id || (p.has_nan != 0 && uint64_t(id) == p.nan);
  }
};

// Runs, and which run each entry is of.
struct WriteRun {
  BCU_DEVICE void write(BCU_CONSTANT UniqueParams& p, int64_t run, int64_t at, bool begins) {
    if (begins) p.starts[run] = at;
    if (begins && run < p.capacity) put(p, run, p.from[at].position);
    if (p.inverse != nullptr) p.inverse[p.from[at].position * p.inverse_stride] = run;
  }
  BCU_DEVICE void put(BCU_CONSTANT UniqueParams& p, int64_t run, int64_t position) {
    int64_t from[1];
    simt::locate(p.x, position, from);
    ElementMove::run(p.size, p.values, run * p.value_stride, p.data, from[0]);
    if (p.indices != nullptr) p.indices[run * p.index_stride] = position;
  }
};

using CountRuns = simt::CountChosen<BeginsRun>;
using SumRuns = simt::PlaceChosen<BeginsRun>;
using WriteRuns = simt::WriteChosen<BeginsRun, WriteRun>;

// How long runs are; zeros behind the last one.
struct FinishRuns {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = UniqueParams;

  template <int kBytes>
  BCU_DEVICE void clear(BCU_GLOBAL void* values, int64_t at) {
    simt::Cell<kBytes> zero = {};
    ((BCU_GLOBAL simt::Cell<kBytes>*)values)[at] = zero;
  }
  BCU_DEVICE void clear_value(BCU_CONSTANT Params& p, int64_t at) {
    switch (p.size) {
      case 1:
        return clear<1>(p.values, at);
      case 2:
        return clear<2>(p.values, at);
      case 4:
        return clear<4>(p.values, at);
    }
    return clear<8>(p.values, at);
  }
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim(), all = *p.count;
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.capacity; i += step) {
      bool there = i < all;
      if (!there) clear_value(p, i * p.value_stride);
      if (!there && p.indices != nullptr) p.indices[i * p.index_stride] = 0;
      if (p.counts == nullptr) continue;
      p.counts[i * p.count_stride] = there ? (i + 1 < all ? p.starts[i + 1] : p.n) - p.starts[i] : 0;
    }
  }
};

}  // namespace baracuda::sort
