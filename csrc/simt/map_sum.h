// The sum of a function over all elements of its operands: map.h's driver, with sums in the place of an output. A fixed
// number of parts, each one block's, adds up over the launches that a space takes; one block adds up the parts. The
// order depends on sizes alone.
#pragma once
#include "simt/map.h"
#include "simt/rows.h"

namespace baracuda::simt {

// The X of a MapParams.
template <class C>
struct SumParts {
  BCU_GLOBAL LongSum<C>* part;
  int32_t filled;  // parts that hold the result of an earlier launch
};

// F::term(in, extra, at) is a C: what is added for the element at position `at`.
template <class F, class C, int kIn, class X>
struct MapSum {
  enum : int { kThreads = 256, kShared = 64, kBlocks = 1, kPack = PackOf<C>::kCount };
  using Params = MapParams<kIn, 1, X>;

  BCU_DEVICE C element(BCU_CONSTANT MapFrame<kIn, 1>& p, BCU_CONSTANT X& extra, uint32_t at) {
    int32_t offset[kIn + 1];
    C in[kIn];
    read_element(p, at, offset, in);
    return F::term(in, extra, p.first + at);
  }
  BCU_DEVICE C pack(BCU_CONSTANT MapFrame<kIn, 1>& p, BCU_CONSTANT X& extra, uint32_t at) {
    int32_t offset[kIn + 1];
    PackOf<C> in[kIn];
    read_pack(p, at, offset, in);
    C term[kPack];
    BCU_UNROLL for (int j = 0; j < kPack; ++j) {
      C a[kIn];
      BCU_UNROLL for (int k = 0; k < kIn; ++k) a[k] = in[k].v[j];
      term[j] = F::term(a, extra, p.first + int64_t(at) * kPack + j);
    }
    return pack_sum<kPack>(term);
  }

  BCU_DEVICE void run(BCU_THREAD const Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    LongSum<C> own = empty_sum<C>();
    uint32_t step = ctx.gdim_x() * ctx.bdim(), me = ctx.bid_x() * ctx.bdim() + ctx.tid();
    for (uint32_t at = me; at < p.frame.packs; at += step) accumulate(own, pack(p.frame, p.extra, at));
    for (uint32_t at = p.frame.packs * kPack + me; at < p.frame.count; at += step)
      accumulate(own, element(p.frame, p.extra, at));
    C total = block_reduce<Add>(ctx, value_of(own), C(0), (BCU_SHARED C*)shared);
    if (ctx.tid() != 0u) return;
    LongSum<C> sum = empty_sum<C>();
    if (int(ctx.bid_x()) < p.extra.filled) sum = p.extra.part[ctx.bid_x()];
    accumulate(sum, total);
    p.extra.part[ctx.bid_x()] = sum;
  }
};

template <class C>
struct SumTotalParams {
  SumParts<C> parts;
  BCU_GLOBAL void* out;
  C divisor;
  int32_t element;
};

// One block.
template <class C>
struct SumTotal {
  using Params = SumTotalParams<C>;
  enum : int { kThreads = 256, kShared = 64 };

  BCU_DEVICE void run(BCU_THREAD const Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    LongSum<C> own = empty_sum<C>();
    for (int k = int(ctx.tid()); k < p.parts.filled; k += kThreads) {
      LongSum<C> part = p.parts.part[k];
      accumulate(own, part.sum);
      own.error += part.error;
    }
    C total = block_reduce<Add>(ctx, value_of(own), C(0), (BCU_SHARED C*)shared);
    if (ctx.tid() == 0u) store_element(p.out, p.element, 0, total / p.divisor);
  }
};

}  // namespace baracuda::simt
