// How many elements of each chunk of a sequence are chosen, and how many are before it: two launches, behind which a
// third writes what was chosen where it belongs.
//
//   struct Kept {
//     using Params = ...;     // n, chunks, and places (of chunks) and count, which are written
//     enum : int { kChunk = ... };
//     BCU_DEVICE bool has(BCU_CONSTANT Params& p, int64_t at) { ... }
//   };
#pragma once
#include "simt/prefix.h"

namespace baracuda::simt {

// A warp counts a chunk.
template <class Chosen>
struct CountChosen {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = typename Chosen::Params;

  BCU_DEVICE void run(BCU_THREAD const Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.warps();
    for (int64_t chunk = int64_t(ctx.bid_x()) * ctx.warps() + ctx.warp(); chunk < p.chunks; chunk += step) {
      int64_t begin = chunk * Chosen::kChunk, end = begin + Chosen::kChunk < p.n ? begin + Chosen::kChunk : p.n;
      uint32_t mine = 0;
      for (int64_t at = begin + ctx.lane(); at < end; at += 32) mine += Chosen::has(p, at) ? 1u : 0u;
      mine = warp_reduce<Add>(ctx, mine);
      if (ctx.lane() == 0u) p.places[chunk] = int64_t(mine);
    }
  }
};

// One block turns the counts into places.
template <class Chosen>
struct PlaceChosen {
  enum : int { kThreads = 1024, kShared = 64 };
  using Params = typename Chosen::Params;

  BCU_DEVICE void run(BCU_THREAD const Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    int64_t all = running_sums(ctx, (BCU_SHARED int64_t*)shared, p.places, p.chunks);
    if (ctx.tid() == 0u) *p.count = all;
  }
};

// A warp calls Writer::write(p, place, at, chosen) for every element of a chunk; `place` is that of the last one that
// was chosen.
template <class Chosen, class Writer>
struct WriteChosen {
  enum : int { kThreads = 256, kShared = 0, kBlocks = 1 };
  using Params = typename Chosen::Params;

  BCU_DEVICE void run(BCU_THREAD const Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.warps();
    for (int64_t chunk = int64_t(ctx.bid_x()) * ctx.warps() + ctx.warp(); chunk < p.chunks; chunk += step) {
      int64_t begin = chunk * Chosen::kChunk, end = begin + Chosen::kChunk < p.n ? begin + Chosen::kChunk : p.n;
      int64_t place = p.places[chunk];
      for (int64_t base = begin; base < end; base += 32) {
        int64_t at = base + ctx.lane();
        uint32_t mine = at < end && Chosen::has(p, at) ? 1u : 0u, upto = warp_upto(ctx, mine);
        if (at < end) Writer::write(p, place + int64_t(upto) - 1, at, mine != 0u);
        place += int64_t(shuffle(ctx, upto, 31u));
      }
    }
  }
};

}  // namespace baracuda::simt
