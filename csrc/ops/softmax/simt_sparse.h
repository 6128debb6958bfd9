// Sparsemax and entmax-1.5 on GPUs: a row by a block, which reads it once for each step.
#pragma once
#include "ops/softmax/sparse.h"
#include "simt/online.h"

namespace baracuda::softmax {

template <int kTensors>
struct SparseParams {
  simt::RowSpace<kTensors> s;
};

template <class Rows, bool kSquared>
struct SparseRows {  // (x, y)
  using C = typename Rows::C;
  using Params = SparseParams<2>;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 64, kPack = Rows::kPack };

  BCU_DEVICE C largest(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p,
                       int64_t x) {
    C top = -math::infinity<C>(), v[kPack];
    for (int64_t i = int64_t(ctx.tid()) * kPack; i < p.s.length; i += int64_t(ctx.bdim()) * kPack) {
      Rows::load(p.s, 0, x, i, -math::infinity<C>(), v);
      BCU_UNROLL for (int j = 0; j < kPack; ++j) top = v[j] > top || v[j] != v[j] ? v[j] : top;
    }
    return simt::block_reduce<simt::Larger>(ctx, top, -math::infinity<C>(), (BCU_SHARED C*)shared);
  }

  BCU_DEVICE Above<C> above(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p,
                            int64_t x, C top, C t) {
    C v[kPack], second[kPack];
    simt::LongSum<C> firsts = simt::empty_sum<C>(), seconds = simt::empty_sum<C>();
    for (int64_t i = int64_t(ctx.tid()) * kPack; i < p.s.length; i += int64_t(ctx.bdim()) * kPack) {
      Rows::load(p.s, 0, x, i, -math::infinity<C>(), v);
      BCU_UNROLL for (int j = 0; j < kPack; ++j) {
        v[j] = sparse_value<false>(distance_of<kSquared>(v[j], top), t);
        second[j] = second_term<kSquared>(v[j]);
      }
      simt::accumulate(firsts, simt::pack_sum<kPack>(v));
      simt::accumulate(seconds, simt::pack_sum<kPack>(second));
    }
    Above<C> found;
    found.first = simt::block_reduce<simt::Add>(ctx, simt::value_of(firsts), C(0), (BCU_SHARED C*)shared);
    found.second = simt::block_reduce<simt::Add>(ctx, simt::value_of(seconds), C(0), (BCU_SHARED C*)shared);
    return found;
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    for (int64_t row = ctx.bid_x(); row < p.s.rows; row += ctx.gdim_x()) {
      int64_t x = simt::row_offset(p.s, 0, row), y = simt::row_offset(p.s, 1, row);
      C top = largest(ctx, shared, p, x), t = C(-1), v[kPack];
      bool none = !(math::fabs(top) < math::infinity<C>()), going = !none;
      for (int step = 0; step < kMostSteps && going; ++step) {
        C next = next_threshold<kSquared>(t, above(ctx, shared, p, x, top, t));
        going = next > t;
        t = going ? next : t;
      }
      for (int64_t i = int64_t(ctx.tid()) * kPack; i < p.s.length; i += int64_t(ctx.bdim()) * kPack) {
        Rows::load(p.s, 0, x, i, C(0), v);
        BCU_UNROLL for (int j = 0; j < kPack; ++j) v[j] =
            none ? math::quiet_nan<C>() : sparse_value<kSquared>(distance_of<kSquared>(v[j], top), t);
        Rows::store(p.s, 1, y, i, v);
      }
    }
  }
};

template <class Rows, bool kSquared>
struct SparseGradient {  // (dy, y, dx)
  using C = typename Rows::C;
  using Params = SparseParams<3>;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 64, kPack = Rows::kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    int64_t begin = int64_t(ctx.tid()) * kPack, step = int64_t(ctx.bdim()) * kPack;
    for (int64_t row = ctx.bid_x(); row < p.s.rows; row += ctx.gdim_x()) {
      int64_t d = simt::row_offset(p.s, 0, row), y = simt::row_offset(p.s, 1, row), dx = simt::row_offset(p.s, 2, row);
      C dy[kPack], v[kPack];
      simt::LongSum<C> products = simt::empty_sum<C>(), slopes = simt::empty_sum<C>();
      for (int64_t i = begin; i < p.s.length; i += step) {
        Rows::load(p.s, 0, d, i, C(0), dy);
        Rows::load(p.s, 1, y, i, C(0), v);
        BCU_UNROLL for (int j = 0; j < kPack; ++j) v[j] = sparse_slope<kSquared>(v[j]), dy[j] *= v[j];
        simt::accumulate(products, simt::pack_sum<kPack>(dy));
        simt::accumulate(slopes, simt::pack_sum<kPack>(v));
      }
      C product = simt::block_reduce<simt::Add>(ctx, simt::value_of(products), C(0), (BCU_SHARED C*)shared);
      C slope = simt::block_reduce<simt::Add>(ctx, simt::value_of(slopes), C(0), (BCU_SHARED C*)shared);
      C mean = product / slope;
      for (int64_t i = begin; i < p.s.length; i += step) {
        Rows::load(p.s, 0, d, i, C(0), dy);
        Rows::load(p.s, 1, y, i, C(0), v);
        BCU_UNROLL for (int j = 0; j < kPack; ++j) v[j] = sparse_slope<kSquared>(v[j]) * (dy[j] - mean);
        Rows::store(p.s, 2, dx, i, v);
      }
    }
  }
};

}  // namespace baracuda::softmax
