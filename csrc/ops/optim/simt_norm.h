// The norm of all elements of a list of tensors on GPUs: a fixed number of parts, each one block's, adds up over the
// launches that a list takes, and one block adds up the parts. The order depends on sizes alone.
#pragma once
#include "ops/optim/simt.h"
#include "simt/rows.h"

namespace baracuda::optim {

// The terms of a norm and how they are added up.
enum NormTerms : int { kLargest, kMagnitudes, kSquares, kPowers };

// What a launch does with its parts.
template <class C>
struct NormParts {
  BCU_GLOBAL simt::LongSum<C>* part;
  C p;
  int32_t terms;
  int32_t filled;  // parts that hold the result of an earlier launch
};

template <class C>
BCU_DEVICE void add_term(BCU_CONSTANT NormParts<C>& p, BCU_THREAD simt::LongSum<C>& sum, C x) {
  C term = p.terms == kSquares ? x * x : math::fabs(x);
  if (p.terms == kPowers) term = math::pow(term, p.p);
  if (p.terms == kLargest)
    sum.sum = simt::Larger::of(sum.sum, term);
  else
    simt::accumulate(sum, term);
}

template <class C>
BCU_DEVICE void add_part(int32_t terms, BCU_THREAD simt::LongSum<C>& sum, simt::LongSum<C> part) {
  if (terms == kLargest) {
    sum.sum = simt::Larger::of(sum.sum, part.sum);
  } else {
    simt::accumulate(sum, part.sum);
    sum.error += part.error;
  }
}

// The block's threads together.
template <class C>
BCU_DEVICE C block_total(BCU_THREAD const simt::Context& ctx, int32_t terms, BCU_THREAD const simt::LongSum<C>& own,
                         BCU_SHARED float* memory) {
  BCU_SHARED C* shared = (BCU_SHARED C*)memory;
  if (terms == kLargest) return simt::block_reduce<simt::Larger>(ctx, own.sum, C(0), shared);
  return simt::block_reduce<simt::Add>(ctx, simt::value_of(own), C(0), shared);
}

template <class C>
BCU_DEVICE void put_part(BCU_THREAD const simt::Context& ctx, BCU_CONSTANT NormParts<C>& p, C total) {
  if (ctx.tid() != 0u) return;
  simt::LongSum<C> sum = simt::empty_sum<C>();
  if (int(ctx.bid_x()) < p.filled) sum = p.part[ctx.bid_x()];
  if (p.terms == kLargest)
    sum.sum = simt::Larger::of(sum.sum, total);
  else
    simt::accumulate(sum, total);
  p.part[ctx.bid_x()] = sum;
}

template <class T>
struct ListNormParams {
  enum : int { kTensors = kListBytes / (8 + 12) };
  NormParts<simt::ComputeOf<T>> parts;
  ListSpace<1, kTensors> list;
  uint32_t chunks;
};

template <class T>
struct ListNorm {
  using Params = ListNormParams<T>;
  using C = simt::ComputeOf<T>;
  using S = simt::Stored<T>;
  enum : int { kThreads = 256, kShared = 64, kPack = simt::Pack<T>::kCount, kRound = kThreads * kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::LongSum<C> own = simt::empty_sum<C>();
    for (uint32_t chunk = ctx.bid_x(); chunk < p.chunks; chunk += ctx.gdim_x()) {
      ChunkPlace here = place_of(p.list, chunk);
      BCU_GLOBAL const T* x = (BCU_GLOBAL const T*)p.list.data[0][here.tensor];
      int64_t packed = p.list.packs ? here.begin + (here.end - here.begin) / kPack * kPack : here.begin;
      for (int64_t at = here.begin + int64_t(ctx.tid()) * kPack; at < packed; at += kRound) {
        simt::Pack<T> v = *(BCU_GLOBAL const simt::Pack<T>*)(x + at);
        BCU_UNROLL for (int j = 0; j < kPack; ++j) add_term(p.parts, own, S::load(v.v[j]));
      }
      for (int64_t at = packed + ctx.tid(); at < here.end; at += kThreads) add_term(p.parts, own, S::load(x[at]));
    }
    put_part(ctx, p.parts, block_total(ctx, p.parts.terms, own, shared));
  }
};

// Any strides, one tensor.
template <class C>
struct StridedNormParams {
  NormParts<C> parts;
  simt::Space<1> space;
  BCU_GLOBAL const void* data;
  int32_t element;
};

template <class C>
struct StridedNorm {
  using Params = StridedNormParams<C>;
  enum : int { kThreads = 256, kShared = 64 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::LongSum<C> own = simt::empty_sum<C>();
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) {
      int64_t offset[1];
      simt::locate(p.space, i, offset);
      add_term(p.parts, own, simt::load_element<C>(p.data, p.element, offset[0]));
    }
    put_part(ctx, p.parts, block_total(ctx, p.parts.terms, own, shared));
  }
};

template <class C>
struct NormTotalParams {
  NormParts<C> parts;
  BCU_GLOBAL void* out;
  BCU_GLOBAL simt::Fault* fault;  // null: a norm that is not finite is no error
  int64_t row;
  int32_t element, tensor;
};

// One block.
template <class C>
struct NormTotal {
  using Params = NormTotalParams<C>;
  enum : int { kThreads = 256, kShared = 64 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::LongSum<C> own = simt::empty_sum<C>();
    for (int k = int(ctx.tid()); k < p.parts.filled; k += kThreads) add_part(p.parts.terms, own, p.parts.part[k]);
    C norm = block_total(ctx, p.parts.terms, own, shared);
    if (ctx.tid() != 0u) return;
    if (p.parts.terms == kSquares) norm = math::sqrt(norm);
    if (p.parts.terms == kPowers) norm = math::pow(norm, C(1) / p.parts.p);
    simt::store_element(p.out, p.element, 0, norm);
    if (p.fault && norm - norm != C(0)) simt::raise_value(p.fault, p.row, p.tensor, -1, norm, simt::kFinite);
  }
};

}  // namespace baracuda::optim
