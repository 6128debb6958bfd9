// A stable radix sort of entries by id, three kernels a digit: what is written to places that only the data names gets
// an order that way, and every place one owner.
#pragma once
#include "simt/prefix.h"

namespace baracuda::simt {

// One occurrence of an id.
struct Entry {
  int64_t id, position;
};

struct SortParams {
  BCU_GLOBAL const Entry* from;
  BCU_GLOBAL Entry* to;
  BCU_GLOBAL uint32_t* counts;  // [digit][tile]
  int64_t count, tiles;
  int32_t shift;
};

// A block sorts a tile of kTile entries by one digit: thread t owns the tile's entries [t * kEach, (t + 1) * kEach).
// kDigits counters of 16 bits per thread, as [digit][thread].
struct SortTile {
  enum : int { kBits = 6, kDigits = 1 << kBits, kThreads = 128, kEach = 16, kTile = kThreads * kEach };

  BCU_DEVICE int digit_of(int64_t id, int32_t shift) { return int(uint64_t(id) >> uint32_t(shift)) & (kDigits - 1); }

  // Counts the digits of this thread's entries into its column of `counters`.
  BCU_DEVICE void count(BCU_THREAD const Context& ctx, BCU_SHARED uint16_t* counters, BCU_CONSTANT SortParams& p,
                        int64_t first) {
    for (int d = 0; d < kDigits; ++d) counters[d * kThreads + int(ctx.tid())] = 0;
    for (int i = 0; i < kEach; ++i) {
      if (first + i >= p.count) break;
      int at = digit_of(p.from[first + i].id, p.shift) * kThreads + int(ctx.tid());
      counters[at] = uint16_t(counters[at] + 1);
    }
  }
};

struct CountDigits {
  using Params = SortParams;
  enum : int { kThreads = SortTile::kThreads, kShared = SortTile::kDigits * kThreads / 2 };

  BCU_DEVICE void run(BCU_THREAD const Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    BCU_SHARED uint16_t* counters = (BCU_SHARED uint16_t*)shared;
    int64_t tile = ctx.bid_x();
    SortTile::count(ctx, counters, p, tile * SortTile::kTile + int64_t(ctx.tid()) * SortTile::kEach);
    barrier(ctx);
    int digit = int(ctx.tid());
    if (digit >= SortTile::kDigits) return;
    uint32_t sum = 0;
    for (int t = 0; t < kThreads; ++t) sum += counters[digit * kThreads + t];
    p.counts[digit * p.tiles + tile] = sum;
  }
};

// One block: counts become the sums of all counts before them.
struct SumCounts {
  using Params = SortParams;
  enum : int { kThreads = 1024, kShared = 32 };

  BCU_DEVICE void run(BCU_THREAD const Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    running_sums(ctx, (BCU_SHARED uint32_t*)shared, p.counts, int64_t(SortTile::kDigits) * p.tiles);
  }
};

struct MoveEntries {
  using Params = SortParams;
  enum : int { kThreads = SortTile::kThreads, kShared = SortTile::kDigits * kThreads / 2 };

  BCU_DEVICE void run(BCU_THREAD const Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    BCU_SHARED uint16_t* counters = (BCU_SHARED uint16_t*)shared;
    int64_t tile = ctx.bid_x(), first = tile * SortTile::kTile + int64_t(ctx.tid()) * SortTile::kEach;
    SortTile::count(ctx, counters, p, first);
    barrier(ctx);
    int digit = int(ctx.tid());
    if (digit < SortTile::kDigits) {
      uint32_t sum = 0;
      for (int t = 0; t < kThreads; ++t) {
        uint32_t n = counters[digit * kThreads + t];
        counters[digit * kThreads + t] = uint16_t(sum);
        sum += n;
      }
    }
    barrier(ctx);
    for (int i = 0; i < SortTile::kEach; ++i) {
      if (first + i >= p.count) break;
      Entry e = p.from[first + i];
      int d = SortTile::digit_of(e.id, p.shift), at = d * kThreads + int(ctx.tid());
      uint32_t place = counters[at];
      counters[at] = uint16_t(place + 1u);
      p.to[int64_t(p.counts[d * p.tiles + tile]) + place] = e;
    }
  }
};

}  // namespace baracuda::simt
