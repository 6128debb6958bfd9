// How many there are of each on GPUs: the bins are sorted, and each bin's are found by where it begins and ends.
#pragma once
#include "ops/indexing/bins.h"
#include "ops/indexing/modes.h"
#include "simt/index.h"
#include "simt/reduce.h"
#include "simt/sorted_fold.h"

namespace baracuda::indexing {

struct MakeBinsParams {
  simt::Space<1> x;
  simt::Number low, high;
  BCU_GLOBAL const void* data;
  BCU_GLOBAL simt::Entry* out;
  int64_t bins;
  int32_t element;
};

template <class C>
struct MakeBins {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = MakeBinsParams;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    C low = simt::number<C>(p.low), high = simt::number<C>(p.high);
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.x.count; i += step) {
      int64_t offset[1];
      simt::locate(p.x, i, offset);
      simt::Entry e;
      e.id = bin_of(simt::load_element<C>(p.data, p.element, offset[0]), low, high, p.bins);
      e.position = i;
      p.out[i] = e;
    }
  }
};

struct LargerIndex {
  template <class T>
  BCU_DEVICE T of(T a, T b) {
    return a < b ? b : a;
  }
};

struct ReadBinsParams {
  simt::Space<1> space;
  simt::IndexParams index;
  BCU_GLOBAL simt::Entry* out;
  BCU_GLOBAL int64_t* largest;  // of each block; -1: there is none
  BCU_GLOBAL int64_t* size;
  int64_t bins, blocks;
};

// Indices are their own bins; those that have none get the number of bins.
struct ReadBins {
  enum : int { kThreads = 256, kShared = 64 };
  using Params = ReadBinsParams;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim(), most = -1;
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) {
      int64_t offset[1], id;
      simt::locate(p.space, i, offset);
      bool good = simt::read_index(p.index, offset[0], i, id);
      most = good && id > most ? id : most;
      simt::Entry e;
      e.id = good && id < p.bins ? id : p.bins;
      e.position = i;
      p.out[i] = e;
    }
    most = simt::block_reduce<LargerIndex>(ctx, most, int64_t(-1), (BCU_SHARED int64_t*)shared);
    if (ctx.tid() == 0u) p.largest[ctx.bid_x()] = most;
  }
};

// One block: how many bins the largest index needs.
struct SizeBins {
  enum : int { kThreads = 256, kShared = 64 };
  using Params = ReadBinsParams;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    int64_t most = int64_t(ctx.tid()) < p.blocks ? p.largest[ctx.tid()] : -1;
    most = simt::block_reduce<LargerIndex>(ctx, most, int64_t(-1), (BCU_SHARED int64_t*)shared);
    if (ctx.tid() == 0u) *p.size = most + 1;
  }
};

struct CountBinsParams {
  simt::SortedParams sorted;
  BCU_GLOBAL void* y;
  int64_t bins, stride;
  int32_t element;
};

// A bin by each thread.
struct CountBins {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = CountBinsParams;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t bin = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); bin < p.bins; bin += step) {
      int64_t first = simt::first_entry(p.sorted, bin, 0, p.sorted.count);
      int64_t found = simt::first_entry(p.sorted, bin + 1, first, p.sorted.count) - first;
      simt::store_element(p.y, p.element, bin * p.stride, found);
    }
  }
};

}  // namespace baracuda::indexing
