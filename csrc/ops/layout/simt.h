// Copies and fills on GPUs: cells of 1 to 16 bytes, whatever is stored in them, between any strides.
#pragma once
#include "ops/layout/axis.h"
#include "simt/map.h"
#include "simt/pair_sum.h"

namespace baracuda::layout {

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
  BCU_GLOBAL const void* from;                                     // null: the pattern
  uint32_t pattern[4];                                             // of one cell, repeated
  int32_t to_stride[simt::kMaxDims], from_stride[simt::kMaxDims];  // in cells, innermost dimension of `to` first
  simt::Divider shape[simt::kMaxDims];
  int32_t rank;
  uint32_t count;
};

// A cell per thread, neighbours in memory where `to` is contiguous.
template <int kBytes>
struct CopyCells {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = CopyParams;
  using Element = Cell<kBytes>;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    copy(ctx, p, p.to);
  }
  BCU_DEVICE void copy(BCU_THREAD const simt::Context& ctx, BCU_CONSTANT Params& p, BCU_GLOBAL void* data) {
    simt::Words4 pattern;
    for (int k = 0; k < 4; ++k) pattern.w[k] = p.pattern[k];
    Element same = *(BCU_THREAD const Element*)&pattern;
    uint32_t step = ctx.gdim_x() * ctx.bdim();
    for (uint32_t at = ctx.bid_x() * ctx.bdim() + ctx.tid(); at < p.count; at += step) {
      uint32_t rest = at;
      int32_t to = 0, from = 0;
      for (int d = 0; d < p.rank; ++d) {
        uint32_t next = d + 1 < p.rank ? simt::quotient(p.shape[d], rest) : 0u;
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

// A copy whose target starts where a number of the device says.
struct ShiftedParams {
  CopyParams copy;
  simt::Number start;
  int64_t step, limit;  // bytes by which one start moves; starts are below the limit
  BCU_GLOBAL simt::Fault* fault;
  int64_t row;
  int32_t tensor;  // which one a fault names
};

template <int kBytes>
struct ShiftedCells {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = ShiftedParams;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t start = simt::number<int64_t>(p.start);
    if (uint64_t(start) >= uint64_t(p.limit)) {
      simt::raise(p.fault, p.row, p.tensor, -1, start, p.limit);
      return;
    }
    CopyCells<kBytes>::copy(ctx, p.copy, (BCU_GLOBAL uint8_t*)p.copy.to + start * p.step);
  }
};

// One side of a transpose: its memory, the strides of the two dimensions of a tile and of the others, in cells.
struct Side {
  int32_t a, b;
  int32_t others[simt::kMaxDims];
  int32_t wide;  // whether cells along its own dimension may be taken four bytes at once
};
struct TransposeParams {
  BCU_GLOBAL void* to;
  BCU_GLOBAL const void* from;
  Side source, target;
  uint32_t a_size, b_size;         // `from` is dense along a, `to` along b
  simt::Divider a_tiles, b_tiles;  // tiles along each
  simt::Divider shape[simt::kMaxDims];
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
    uint32_t rest = simt::quotient(p.b_tiles, tile);
    at.b = (tile - rest * p.b_tiles.divisor) * uint32_t(kTile);
    uint32_t next = simt::quotient(p.a_tiles, rest);
    at.a = (rest - next * p.a_tiles.divisor) * uint32_t(kTile);
    at.from = at.to = 0;
    rest = next;
    for (int d = 0; d < p.rank; ++d) {
      next = simt::quotient(p.shape[d], rest);
      int32_t c = int32_t(rest - next * p.shape[d].divisor);
      rest = next;
      at.from += c * p.source.others[d], at.to += c * p.target.others[d];
    }
    return at;
  }

  BCU_DEVICE void read(BCU_THREAD const simt::Context& ctx, BCU_SHARED Element* tile, BCU_CONSTANT Params& p,
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

  BCU_DEVICE void write(BCU_THREAD const simt::Context& ctx, BCU_SHARED const Element* tile, BCU_CONSTANT Params& p,
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

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    BCU_SHARED Element* tile = (BCU_SHARED Element*)shared;
    for (uint32_t i = ctx.bid_x(); i < p.tiles; i += ctx.gdim_x()) {
      Place at = place(p, i);
      read(ctx, tile, p, at);
      simt::barrier(ctx);
      write(ctx, tile, p, at);
      simt::barrier(ctx);
    }
  }
};

struct TriangleParams {
  BCU_GLOBAL void* to;
  BCU_GLOBAL const void* from;
  int64_t shape[simt::kMaxDims], to_stride[simt::kMaxDims], from_stride[simt::kMaxDims];  // columns, rows, others
  int64_t count, diagonal;
  int32_t rank, upper;
};

template <int kBytes>
struct TriangleCells {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = TriangleParams;
  using Element = Cell<kBytes>;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t at = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); at < p.count; at += step) {
      int64_t rest = at, to = 0, from = 0, column = 0, row = 0;
      for (int d = 0; d < p.rank; ++d) {
        int64_t next = rest / p.shape[d], c = rest - next * p.shape[d];
        rest = next;
        if (d == 0) column = c;
        if (d == 1) row = c;
        to += c * p.to_stride[d], from += c * p.from_stride[d];
      }
      Element cell = {};
      int64_t beyond = column - row;
      if (p.upper ? beyond >= p.diagonal : beyond <= p.diagonal) cell = ((BCU_GLOBAL const Element*)p.from)[from];
      ((BCU_GLOBAL Element*)p.to)[to] = cell;
    }
  }
};

struct GradientParams {
  Axis axes[simt::kMaxDims];
  int64_t shape[simt::kMaxDims], dx_stride[simt::kMaxDims], dy_stride[simt::kMaxDims];
  BCU_GLOBAL const void* dy;
  BCU_GLOBAL void* dx;
  int64_t count;
  int32_t rank, mode, element;
};

// A thread adds up all places that one element went to.
template <class C>
struct OccurrenceSums {
  enum : int { kThreads = 256, kShared = 0, kBlocks = 1 };
  using Params = GradientParams;

  BCU_DEVICE Axis axis(BCU_CONSTANT Params& p, int d) {
    Axis a;
    a.size = p.axes[d].size, a.padded = p.axes[d].padded, a.low = p.axes[d].low, a.skipped = p.axes[d].skipped;
    return a;
  }
  // Element `at` of dx, coordinate by coordinate: how many places it went to, and its k-th one in dy.
  BCU_DEVICE int64_t places(BCU_CONSTANT Params& p, int64_t at, BCU_THREAD int64_t& dx) {
    int64_t total = 1;
    dx = 0;
    for (int d = p.rank - 1; d >= 0; --d) {
      int64_t next = at / p.shape[d], c = at - next * p.shape[d];
      at = next;
      dx += c * p.dx_stride[d];
      total *= occurrences(axis(p, d), p.mode, c - p.axes[d].skipped);
    }
    return total;
  }
  BCU_DEVICE int64_t place(BCU_CONSTANT Params& p, int64_t at, int64_t k) {
    int64_t from = 0;
    for (int d = p.rank - 1; d >= 0; --d) {
      Axis a = axis(p, d);
      int64_t next = at / p.shape[d], c = at - next * p.shape[d] - a.skipped;
      at = next;
      int64_t n = occurrences(a, p.mode, c), rest = k / n;
      from += occurrence(a, p.mode, c, k - rest * n) * p.dy_stride[d];
      k = rest;
    }
    return from;
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t at = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); at < p.count; at += step) {
      int64_t dx, total = places(p, at, dx);
      typename simt::PairSum<C>::Sum sum = simt::PairSum<C>::start(C(0));
      for (int64_t k = 0; k < total; ++k)
        simt::PairSum<C>::add(sum, simt::load_element<C>(p.dy, p.element, place(p, at, k)));
      simt::store_element(p.dx, p.element, dx, simt::PairSum<C>::value(sum));
    }
  }
};

// Sequences: functions of an element's place.
struct Place {
  int64_t count;
};
BCU_DEVICE float progressed(float start, float step, int64_t at) { return start + float(at) * step; }
#if BCU_HAS_F64
BCU_DEVICE double progressed(double start, double step, int64_t at) { return start + double(at) * step; }
#endif
BCU_DEVICE uint64_t progressed(uint64_t start, uint64_t step, int64_t at) { return start + uint64_t(at) * step; }
BCU_DEVICE int64_t progressed(int64_t start, int64_t step, int64_t at) {
  return int64_t(progressed(uint64_t(start), uint64_t(step), at));
}
struct Progression {
  template <class C>
  BCU_DEVICE void apply(BCU_THREAD const C* in, BCU_THREAD C* out, BCU_CONSTANT Place&, int64_t at) {
    out[0] = progressed(in[0], in[1], at);
  }
};
struct Between {
  template <class C>
  BCU_DEVICE void apply(BCU_THREAD const C* in, BCU_THREAD C* out, BCU_CONSTANT Place& p, int64_t at) {
    int64_t last = p.count - 1;
    C step = last > 0 ? (in[1] - in[0]) / C(last) : C(0);
    bool first_half = at < p.count / 2 || last == 0;
    out[0] = first_half ? progressed(in[0], step, at) : progressed(in[1], -step, last - at);
  }
};

}  // namespace baracuda::layout
