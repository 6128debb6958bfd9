// Sorting on GPUs: all lines at once. Elements become entries by their keys, which simt/sort.h sorts; a second sort, by
// line, keeps that order within each.
#pragma once
#include "ops/sort/order.h"
#include "simt/copy_cells.h"
#include "simt/sort.h"
#include "simt/space.h"

namespace baracuda::sort {

struct LineParams {
  simt::Space<1> x;        // elements of all lines, one line after another
  simt::Space<2> results;  // values and indices, likewise
  BCU_GLOBAL const void* data;
  BCU_GLOBAL void* values;
  BCU_GLOBAL int64_t* indices;
  BCU_GLOBAL const simt::Entry* from;
  BCU_GLOBAL simt::Entry* to;
  uint64_t sign, infinity, mask,
      flip;  // as order.h has them; the bits of an element; those where the largest come first
  int64_t count, length;
  int32_t size, truth;  // bytes of an element; whether it is bool
};

// The bits of an element, as uint64_t.
BCU_DEVICE uint64_t bits_at(BCU_CONSTANT LineParams& p, int64_t at) {
  switch (p.size) {
    case 1: {
      uint64_t v = ((BCU_GLOBAL const uint8_t*)p.data)[at];
      return p.truth != 0 ? (v != 0 ? uint64_t(1) : uint64_t(0)) : v;
    }
    case 2:
      return ((BCU_GLOBAL const uint16_t*)p.data)[at];
    case 4:
      return ((BCU_GLOBAL const uint32_t*)p.data)[at];
  }
  return ((BCU_GLOBAL const uint64_t*)p.data)[at];
}

struct MakeEntries {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = LineParams;

  // The key of bits in an element's lower end, in the lower end, too: that of its upper end is shifted back.
  BCU_DEVICE uint64_t key(BCU_CONSTANT Params& p, uint64_t bits) {
    uint32_t up = 64u - 8u * uint32_t(p.size);
    uint64_t infinity = p.infinity << up, sign = p.sign << up;
    return (key_of<uint64_t>(bits << up, sign, infinity) >> up ^ p.flip) & p.mask;
  }
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.count; i += step) {
      int64_t offset[1];
      simt::locate(p.x, i, offset);
      simt::Entry e;
      e.id = int64_t(key(p, bits_at(p, offset[0])));
      e.position = i;
      p.to[i] = e;
    }
  }
};

// The same entries by the lines that they are of.
struct NumberLines {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = LineParams;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.count; i += step) {
      simt::Entry e = p.from[i];
      e.id = e.position / p.length;
      p.to[i] = e;
    }
  }
};

struct WriteSorted {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = LineParams;

  template <int kBytes>
  BCU_DEVICE void move(BCU_CONSTANT Params& p, int64_t to, int64_t from) {
    using Element = simt::Cell<kBytes>;
    ((BCU_GLOBAL Element*)p.values)[to] = ((BCU_GLOBAL const Element*)p.data)[from];
  }
  BCU_DEVICE void put(BCU_CONSTANT Params& p, int64_t to, int64_t from) {
    switch (p.size) {
      case 1:
        return move<1>(p, to, from);
      case 2:
        return move<2>(p, to, from);
      case 4:
        return move<4>(p, to, from);
    }
    return move<8>(p, to, from);
  }
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.count; i += step) {
      int64_t position = p.from[i].position, from[1], to[2];
      simt::locate(p.x, position, from);
      simt::locate(p.results, i, to);
      put(p, to[0], from[0]);
      p.indices[to[1]] = position % p.length;
    }
  }
};

}  // namespace baracuda::sort
