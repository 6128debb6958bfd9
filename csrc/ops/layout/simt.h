// What layout ops do on GPUs beside the copies of simt/copy_cells.h.
#pragma once
#include "ops/layout/axis.h"
#include "simt/copy_cells.h"
#include "simt/pair_sum.h"

namespace baracuda::layout {

// A copy whose target starts where a number of the device says.
struct ShiftedParams {
  simt::CopyParams copy;
  simt::Number start;
  int64_t step, limit;  // bytes by which one start moves; starts are below the limit
  BCU_GLOBAL simt::Fault* fault;
  int64_t row;
  int32_t scalar;  // which number a fault names
};

template <int kBytes>
struct ShiftedCells {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = ShiftedParams;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t start = simt::number<int64_t>(p.start);
    if (uint64_t(start) >= uint64_t(p.limit)) {
      simt::raise(p.fault, p.row, -1, p.scalar, start, p.limit);
      return;
    }
    simt::CopyCells<kBytes>::copy(ctx, p.copy, (BCU_GLOBAL uint8_t*)p.copy.to + start * p.step);
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
  using Element = simt::Cell<kBytes>;

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
