// Copies and fills on GPUs: cells of 1 to 16 bytes, whatever is stored in them, between any strides.
#pragma once
#include "simt/map.h"

namespace baracuda::simt {

// Memory of so many bytes.
template <int kBytes>
struct Cell;
template <>
struct BCU_WORDS(1) Cell<1> {
  uint8_t v;
};
template <>
struct BCU_WORDS(2) Cell<2> {
  uint16_t v;
};
template <>
struct BCU_WORDS(4) Cell<4> {
  uint32_t v;
};
template <>
struct BCU_WORDS(8) Cell<8> {
  uint32_t v[2];
};
template <>
struct BCU_WORDS(16) Cell<16> {
  uint32_t v[4];
};

struct CopyParams {
  BCU_GLOBAL void* to;
  BCU_GLOBAL const void* from;                         // null: the pattern
  uint32_t pattern[4];                                 // of one cell, repeated
  int32_t to_stride[kMaxDims], from_stride[kMaxDims];  // in cells, innermost dimension of `to` first
  Divider shape[kMaxDims];
  int32_t rank;
  uint32_t count;
};

// A cell per thread, neighbours in memory where `to` is contiguous.
template <int kBytes>
struct CopyCells {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = CopyParams;
  using Element = Cell<kBytes>;

  BCU_DEVICE void run(BCU_THREAD const Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) { copy(ctx, p, p.to); }
  BCU_DEVICE void copy(BCU_THREAD const Context& ctx, BCU_CONSTANT Params& p, BCU_GLOBAL void* data) {
    Words4 pattern;
    for (int k = 0; k < 4; ++k) pattern.w[k] = p.pattern[k];
    Element same = *(BCU_THREAD const Element*)&pattern;
    uint32_t step = ctx.gdim_x() * ctx.bdim();
    for (uint32_t at = ctx.bid_x() * ctx.bdim() + ctx.tid(); at < p.count; at += step) {
      uint32_t rest = at;
      int32_t to = 0, from = 0;
      for (int d = 0; d < p.rank; ++d) {
        uint32_t next = d + 1 < p.rank ? quotient(p.shape[d], rest) : 0u;
        int32_t c = int32_t(rest - next * p.shape[d].divisor);
        rest = next;
        to += c * p.to_stride[d], from += c * p.from_stride[d];
      }
      Element cell = same;
      if (p.from) cell = ((BCU_GLOBAL const Element*)p.from)[from];
      ((BCU_GLOBAL Element*)data)[to] = cell;
    }
  }
};

// One side of a transpose: its memory, the strides of the two dimensions of a tile and of the others, in cells.
struct CopySide {
  int32_t a, b;
  int32_t others[kMaxDims];
  int32_t wide;  // whether cells along its own dimension may be taken four bytes at once
};
struct TransposeParams {
  BCU_GLOBAL void* to;
  BCU_GLOBAL const void* from;
  CopySide source, target;
  uint32_t a_size, b_size;   // `from` is dense along a, `to` along b
  Divider a_tiles, b_tiles;  // tiles along each
  Divider shape[kMaxDims];
  int32_t rank;  // of the other dimensions
  uint32_t tiles;
};

// Two dimensions change places through tiles in shared memory, so that both sides are read and written along their
// rows.
template <int kBytes>
struct TransposeCells {
  enum : int {
    kRun = kBytes < 4 ? 4 / kBytes : 1,  // cells that a thread takes at once
    kRunBytes = kBytes * kRun,
    kTile = 32 * kRun,
    kPitch = kTile + kRun,  // cells; an odd number of words, so that columns lie in different banks
    kThreads = 256,
    kShared = kTile * kPitch * kBytes / 4,
  };
  using Params = TransposeParams;
  using Element = Cell<kBytes>;
  using Run = Cell<kRunBytes>;

  // Where a tile starts.
  struct Place {
    uint32_t a, b;
    int32_t from, to;
  };
  BCU_DEVICE Place place(BCU_CONSTANT Params& p, uint32_t tile) {
    Place at;
    uint32_t rest = quotient(p.b_tiles, tile);
    at.b = (tile - rest * p.b_tiles.divisor) * uint32_t(kTile);
    uint32_t next = quotient(p.a_tiles, rest);
    at.a = (rest - next * p.a_tiles.divisor) * uint32_t(kTile);
    at.from = at.to = 0;
    rest = next;
    for (int d = 0; d < p.rank; ++d) {
      next = quotient(p.shape[d], rest);
      int32_t c = int32_t(rest - next * p.shape[d].divisor);
      rest = next;
      at.from += c * p.source.others[d], at.to += c * p.target.others[d];
    }
    return at;
  }

  BCU_DEVICE void read(BCU_THREAD const Context& ctx, BCU_SHARED Element* tile, BCU_CONSTANT Params& p,
                       BCU_THREAD const Place& at) {
    uint32_t a = at.a + ctx.lane() * uint32_t(kRun);
    BCU_UNROLL for (int i = 0; i < kTile / 8; ++i) {
      uint32_t row = ctx.warp() + uint32_t(8 * i), b = at.b + row;
      if (b >= p.b_size) continue;
      BCU_GLOBAL const Element* from =
          (BCU_GLOBAL const Element*)p.from + (at.from + int32_t(a) * p.source.a + int32_t(b) * p.source.b);
      BCU_SHARED Element* to = tile + row * uint32_t(kPitch) + ctx.lane() * uint32_t(kRun);
      if (p.source.wide && a + uint32_t(kRun) <= p.a_size) {
        *(BCU_SHARED Run*)to = *(BCU_GLOBAL const Run*)from;
      } else {
        for (int j = 0; j < kRun; ++j)
          if (a + uint32_t(j) < p.a_size) to[j] = from[j * p.source.a];
      }
    }
  }

  BCU_DEVICE void write(BCU_THREAD const Context& ctx, BCU_SHARED const Element* tile, BCU_CONSTANT Params& p,
                        BCU_THREAD const Place& at) {
    uint32_t column = ctx.lane() * uint32_t(kRun), b = at.b + column;
    BCU_UNROLL for (int i = 0; i < kTile / 8; ++i) {
      uint32_t row = ctx.warp() + uint32_t(8 * i), a = at.a + row;
      if (a >= p.a_size) continue;
      BCU_GLOBAL Element* to = (BCU_GLOBAL Element*)p.to + (at.to + int32_t(a) * p.target.a + int32_t(b) * p.target.b);
      BCU_SHARED const Element* from = tile + column * uint32_t(kPitch) + row;
      if (p.target.wide && b + uint32_t(kRun) <= p.b_size) {
        Run run;
        BCU_UNROLL for (int j = 0; j < kRun; ++j)((BCU_THREAD Element*)&run)[j] = from[j * kPitch];
        *(BCU_GLOBAL Run*)to = run;
      } else {
        for (int j = 0; j < kRun; ++j)
          if (b + uint32_t(j) < p.b_size) to[j * p.target.b] = from[j * kPitch];
      }
    }
  }

  BCU_DEVICE void run(BCU_THREAD const Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    BCU_SHARED Element* tile = (BCU_SHARED Element*)shared;
    for (uint32_t i = ctx.bid_x(); i < p.tiles; i += ctx.gdim_x()) {
      Place at = place(p, i);
      read(ctx, tile, p, at);
      barrier(ctx);
      write(ctx, tile, p, at);
      barrier(ctx);
    }
  }
};

}  // namespace baracuda::simt
