// Each of the values of a line once, on GPUs: of entries that lie in their order, chunks count those that begin a run
// of equal ones; the counts become the number of the first run of each chunk, and then all is written.
#pragma once
#include "ops/sort/simt.h"

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

// A NaN is equal to nothing.
BCU_DEVICE bool begins_run(BCU_CONSTANT UniqueParams& p, int64_t at) {
  int64_t id = p.from[at].id;
  return at == 0 || id != p.from[at - 1].id || (p.has_nan != 0 && uint64_t(id) == p.nan);
}

// A warp counts a chunk.
struct CountRuns {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = UniqueParams;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.warps();
    for (int64_t chunk = int64_t(ctx.bid_x()) * ctx.warps() + ctx.warp(); chunk < p.chunks; chunk += step) {
      int64_t begin = chunk * kSimtRunChunk, end = begin + kSimtRunChunk < p.n ? begin + kSimtRunChunk : p.n;
      uint32_t mine = 0;
      for (int64_t at = begin + ctx.lane(); at < end; at += 32) mine += begins_run(p, at) ? 1u : 0u;
      mine = simt::warp_reduce<simt::Add>(ctx, mine);
      if (ctx.lane() == 0u) p.places[chunk] = int64_t(mine);
    }
  }
};

// One block.
struct SumRuns {
  enum : int { kThreads = 1024, kShared = 64 };
  using Params = UniqueParams;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    int64_t all = simt::running_sums(ctx, (BCU_SHARED int64_t*)shared, p.places, p.chunks);
    if (ctx.tid() == 0u) *p.count = all;
  }
};

// A warp writes the runs that begin in a chunk, and which run each of its entries is of.
struct WriteRuns {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = UniqueParams;

  BCU_DEVICE void put(BCU_CONSTANT Params& p, int64_t run, int64_t position) {
    int64_t from[1];
    simt::locate(p.x, position, from);
    ElementMove::run(p.size, p.values, run * p.value_stride, p.data, from[0]);
    if (p.indices != nullptr) p.indices[run * p.index_stride] = position;
  }
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.warps();
    for (int64_t chunk = int64_t(ctx.bid_x()) * ctx.warps() + ctx.warp(); chunk < p.chunks; chunk += step) {
      int64_t begin = chunk * kSimtRunChunk, end = begin + kSimtRunChunk < p.n ? begin + kSimtRunChunk : p.n;
      int64_t place = p.places[chunk];
      for (int64_t base = begin; base < end; base += 32) {
        int64_t at = base + ctx.lane();
        uint32_t mine = at < end && begins_run(p, at) ? 1u : 0u, upto = simt::warp_upto(ctx, mine);
        int64_t run = place + int64_t(upto) - 1;
        if (mine != 0u) p.starts[run] = at;
        if (mine != 0u && run < p.capacity) put(p, run, p.from[at].position);
        if (at < end && p.inverse != nullptr) p.inverse[p.from[at].position * p.inverse_stride] = run;
        place += int64_t(simt::shuffle(ctx, upto, 31u));
      }
    }
  }
};

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
