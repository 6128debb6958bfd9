// What is kept, in order, on GPUs: nonzero and masked_select. Chunks are counted, the counts become the places where
// chunks begin, and then the elements are moved.
#pragma once
#include "ops/indexing/modes.h"
#include "simt/copy_cells.h"
#include "simt/prefix.h"
#include "simt/space.h"

namespace baracuda::indexing {

struct CompactParams {
  simt::Space<1> tested;
  simt::Space<1> values;  // masked_select: what is moved
  BCU_GLOBAL const void* data;
  BCU_GLOBAL const void* from;
  BCU_GLOBAL void* to;
  BCU_GLOBAL int64_t* places;  // of chunks
  BCU_GLOBAL int64_t* count;
  int64_t shape[simt::kMaxDims];  // of what is tested, outermost dimension first
  int64_t n, chunks, capacity, row_stride, column_stride;
  int32_t element, rank, size;  // size: of what is moved, in bytes; 0: coordinates are written
};

// NaN is kept, -0 is not.
BCU_DEVICE bool is_kept(BCU_CONSTANT CompactParams& p, int64_t at) {
  int64_t offset[1];
  simt::locate(p.tested, at, offset);
  switch (p.element) {
    case simt::kF16:
    case simt::kBF16:
      return (((BCU_GLOBAL const uint16_t*)p.data)[offset[0]] & 0x7fffu) != 0;
    case simt::kF32:
      return (((BCU_GLOBAL const uint32_t*)p.data)[offset[0]] & 0x7fffffffu) != 0;
#if BCU_HAS_F64
    case simt::kF64:
      return (((BCU_GLOBAL const uint64_t*)p.data)[offset[0]] << 1u) != 0;
#endif
  }
  return simt::load_element<uint64_t>(p.data, p.element, offset[0]) != 0;
}

// A warp counts a chunk.
struct CountKept {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = CompactParams;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.warps();
    for (int64_t chunk = int64_t(ctx.bid_x()) * ctx.warps() + ctx.warp(); chunk < p.chunks; chunk += step) {
      int64_t begin = chunk * kSimtChunk, end = begin + kSimtChunk < p.n ? begin + kSimtChunk : p.n;
      uint32_t mine = 0;
      for (int64_t at = begin + ctx.lane(); at < end; at += 32) mine += is_kept(p, at) ? 1u : 0u;
      mine = simt::warp_reduce<simt::Add>(ctx, mine);
      if (ctx.lane() == 0u) p.places[chunk] = int64_t(mine);
    }
  }
};

// One block.
struct SumKept {
  enum : int { kThreads = 1024, kShared = 64 };
  using Params = CompactParams;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    int64_t all = simt::running_sums(ctx, (BCU_SHARED int64_t*)shared, p.places, p.chunks);
    if (ctx.tid() == 0u) *p.count = all;
  }
};

// A warp moves what a chunk keeps.
struct MoveKept {
  enum : int { kThreads = 256, kShared = 0, kBlocks = 1 };
  using Params = CompactParams;

  template <int kBytes>
  BCU_DEVICE void move(BCU_CONSTANT Params& p, int64_t to, int64_t from) {
    using Element = simt::Cell<kBytes>;
    ((BCU_GLOBAL Element*)p.to)[to] = ((BCU_GLOBAL const Element*)p.from)[from];
  }
  BCU_DEVICE void put_coordinates(BCU_CONSTANT Params& p, int64_t to, int64_t at) {
    for (int d = p.rank - 1; d >= 0; --d) {
      int64_t next = at / p.shape[d];
      ((BCU_GLOBAL int64_t*)p.to)[to + d * p.column_stride] = at - next * p.shape[d];
      at = next;
    }
  }
  BCU_DEVICE void put(BCU_CONSTANT Params& p, int64_t place, int64_t at) {
    int64_t to = place * p.row_stride, from[1];
    if (p.size == 0) return put_coordinates(p, to, at);
    simt::locate(p.values, at, from);
    switch (p.size) {
      case 1:
        return move<1>(p, to, from[0]);
      case 2:
        return move<2>(p, to, from[0]);
      case 4:
        return move<4>(p, to, from[0]);
      case 8:
        return move<8>(p, to, from[0]);
      default:
        return move<16>(p, to, from[0]);
    }
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.warps();
    for (int64_t chunk = int64_t(ctx.bid_x()) * ctx.warps() + ctx.warp(); chunk < p.chunks; chunk += step) {
      int64_t begin = chunk * kSimtChunk, end = begin + kSimtChunk < p.n ? begin + kSimtChunk : p.n;
      int64_t place = p.places[chunk];
      for (int64_t base = begin; base < end; base += 32) {
        int64_t at = base + ctx.lane();
        uint32_t mine = at < end && is_kept(p, at) ? 1u : 0u, upto = simt::warp_upto(ctx, mine);
        int64_t to = place + int64_t(upto) - 1;
        if (mine != 0u && to < p.capacity) put(p, to, at);
        place += int64_t(simt::shuffle(ctx, upto, 31u));
      }
    }
  }
};

}  // namespace baracuda::indexing
