// Attention backward on GPUs. P is computed again from the scores and lse, tile by tile:
//   dP = dout V^T, dS = P (dP - delta), delta = rowsum(dout out), dq = scale dS K, dk = scale dS^T Q, dv = P^T dout.
// One kernel owns tiles of queries and finishes dq, one owns tiles of keys and finishes dk and dv: nothing is added to
// from two sides, and sums have one order.
#pragma once
#include "ops/attention/simt.h"

namespace baracuda::attention {

// A warp per query row.
template <class T, int kLayout>
struct DeltasOfRows {
  using Params = SimtParams<kLayout>;
  using C = simt::ComputeOf<T>;
  using S = simt::Stored<T>;
  enum : int { kThreads = 256, kShared = 0 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& all) {
    BCU_CONSTANT SimtProblem& p = all.problem;
    int64_t count = int64_t(p.batch) * p.kv_heads * p.rows, step = int64_t(ctx.gdim_x()) * ctx.warps();
    for (int64_t at = int64_t(ctx.bid_x()) * ctx.warps() + ctx.warp(); at < count; at += step) {
      int64_t head_index = at / p.rows;
      Head head = Place<kLayout>::of(all, head_index);
      int32_t row = int32_t(at - head_index * p.rows);
      if (kLayout == kPacked && row >= head.rows) continue;
      BCU_GLOBAL const T* x =
          (BCU_GLOBAL const T*)p.dout.data + Head::base(p, head, p.dout, true) + Head::line(p, p.dout, true, row);
      BCU_GLOBAL const T* y =
          (BCU_GLOBAL const T*)p.out.data + Head::base(p, head, p.out, true) + Head::line(p, p.out, true, row);
      C sum = C(0);
      for (int32_t c = int32_t(ctx.lane()); c < p.dim_v; c += 32)
        sum += S::load(x[c * p.dout.column]) * S::load(y[c * p.out.column]);
      sum = simt::warp_reduce<simt::Add>(ctx, sum);
      if (ctx.lane() == 0u) ((BCU_GLOBAL C*)p.scratch)[at] = sum;
    }
  }
};

template <class T>
using RowDeltas = DeltasOfRows<T, kDense>;
template <class T>
using PackedRowDeltas = DeltasOfRows<T, kPacked>;

// dsink = -sum over a head's query rows of exp(sink - lse) delta, 0 of an infinite sink: a block per head, after the
// deltas.
template <class C, int kLayout>
struct GradientsOfSinks {
  using Params = SimtParams<kLayout>;
  enum : int { kThreads = 256, kBlocks = 4, kShared = 8 * int(sizeof(C) / 4) };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* memory, BCU_CONSTANT Params& all) {
    BCU_CONSTANT SimtProblem& p = all.problem;
    int32_t group = int32_t(p.group.divisor), kv_head = int32_t(ctx.bid_x()) / group;
    int32_t own = int32_t(ctx.bid_x()) - kv_head * group;
    C sink = ((BCU_GLOBAL const C*)p.sinks)[ctx.bid_x() * p.sink_stride], sum = C(0);
    for (int32_t b = 0; b < p.batch; ++b) {
      int64_t index = int64_t(b) * p.kv_heads + kv_head;
      Head head = Place<kLayout>::of(all, index);
      for (int32_t i = int32_t(ctx.tid()); i < head.q_len; i += int32_t(ctx.bdim())) {
        int32_t row = i * group + own;
        C lse = ((BCU_GLOBAL const C*)p.lse)[Head::lse(p, head, row)];
        if (math::fabs(sink) != math::infinity<C>())
          sum += math::exp(sink - lse) * ((BCU_GLOBAL const C*)p.scratch)[index * p.rows + row];
      }
    }
    sum = simt::block_reduce<simt::Add>(ctx, sum, C(0), (BCU_SHARED C*)memory);
    if (ctx.tid() == 0u) ((BCU_GLOBAL C*)p.dsinks)[ctx.bid_x() * p.dsink_stride] = C(0) - sum;
  }
};
template <class C>
using SinkGradients = GradientsOfSinks<C, kDense>;
template <class C>
using PackedSinkGradients = GradientsOfSinks<C, kPacked>;

// P and dS of a tile, a thread's share.
template <class T, int kR, int kK, int kC, int kLayout>
struct Gradients {
  using B = Blocks<T, kR, kK, kC, kLayout>;
  using C = simt::ComputeOf<T>;

  // Says which weights are dropped: P still has them.
  BCU_DEVICE uint32_t tile(BCU_THREAD const simt::Context& ctx, BCU_SHARED C* shared,
                           BCU_CONSTANT SimtParams<kLayout>& all, BCU_THREAD const Head& head, int64_t head_index,
                           BCU_THREAD const Keys& keys, int32_t first, int32_t rows, int32_t key, int32_t n, C scale,
                           BCU_THREAD C* weights, BCU_THREAD C* slopes) {
    BCU_CONSTANT SimtProblem& p = all.problem;
    int tid = int(ctx.tid()), tx = tid % kSide, ty = tid / kSide;
    BCU_UNROLL for (int x = 0; x < B::kPairs; ++x) weights[x] = slopes[x] = C(0);
    B::dots(ctx, shared, p, p.q, lines_of<kLayout>(p, head, p.q, true, first, rows), p.k,
            lines_of<kLayout>(p, head, p.k, false, key, n), p.dim, scale, weights);
    B::dots(ctx, shared, p, p.dout, lines_of<kLayout>(p, head, p.dout, true, first, rows), p.v,
            lines_of<kLayout>(p, head, p.v, false, key, n), p.dim_v, C(1), slopes);
    uint32_t dropped = 0u;
    if (drops(all)) {
      dropped = Place<kLayout>::template dropped<kR, kK>(all, head, first + ty * kR, key + tx * kK);
      Place<kLayout>::template drop<B::kPairs>(all, dropped, slopes);
    }
    BCU_UNROLL for (int i = 0; i < kR; ++i) {
      C delta = C(0);
      if (ty * kR + i < rows) delta = ((BCU_GLOBAL const C*)p.scratch)[head_index * p.rows + first + ty * kR + i];
      BCU_UNROLL for (int j = 0; j < kK; ++j) slopes[i * kK + j] -= delta;
    }
    if (p.capped) {
      C cap = simt::from_bits<C>(p.softcap);
      BCU_UNROLL for (int x = 0; x < B::kPairs; ++x) {
        C t = math::tanh(weights[x] / cap);
        weights[x] = cap * t, slopes[x] *= C(1) - t * t;
      }
    }
    BCU_UNROLL for (int i = 0; i < kR; ++i) {
      int32_t row = first + ty * kR + i, start = 0, limit = 0;
      C lse = C(0);
      if (ty * kR + i < rows) {
        start = Keys::start(p, keys, row), limit = Keys::limit(p, keys, row);
        limit = limit < key + n ? limit : key + n;
        lse = ((BCU_GLOBAL const C*)p.lse)[Head::lse(p, head, row)];
        lse = lse == -math::infinity<C>() ? -lse : lse;  // an empty row: every P becomes 0
        if (p.alibi) B::fall(p, head, keys, row, key + tx * kK, weights + i * kK);
      }
      BCU_UNROLL for (int j = 0; j < kK; ++j) {
        int32_t k = key + tx * kK + j;
        bool used = k >= start && k < limit;
        C s = weights[i * kK + j];
        if (p.mask && used) s += Head::mask<C>(p, head, row, k);
        C weight = math::exp(s - lse);
        weights[i * kK + j] = used ? weight : C(0);
        slopes[i * kK + j] = used ? weight * slopes[i * kK + j] : C(0);
      }
    }
    return dropped;
  }
};

template <class T, int kR, int kK, int kC, int kLayout>
struct QueryGradientTiles {
  using Params = SimtParams<kLayout>;
  using B = Blocks<T, kR, kK, kC, kLayout>;
  using C = simt::ComputeOf<T>;
  enum : int { kThreads = 256, kShared = B::kShared };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* memory, BCU_CONSTANT Params& all) {
    BCU_CONSTANT SimtProblem& p = all.problem;
    BCU_SHARED C* shared = (BCU_SHARED C*)memory;
    int tid = int(ctx.tid()), tx = tid % kSide, ty = tid / kSide;
    int64_t heads = int64_t(p.batch) * p.kv_heads, rest = int64_t(ctx.bid_x()) / heads;
    int64_t head_index = int64_t(ctx.bid_x()) - rest * heads;
    Head head = Place<kLayout>::of(all, head_index);
    int32_t column = int32_t(rest % p.chunks) * B::kColumns;
    int32_t first = (p.tiles - 1 - int32_t(rest / p.chunks)) * B::kRows;
    if (kLayout == kPacked && first >= head.rows) return;
    int32_t rows = head.rows - first < B::kRows ? head.rows - first : int32_t(B::kRows);
    Keys keys = Keys::of(p, head);
    int32_t last = Keys::limit(p, keys, first + rows - 1);
    C scale = scale_of<C>(p), result[B::kRowResults];
    BCU_UNROLL for (int x = 0; x < B::kRowResults; ++x) result[x] = C(0);
    for (int32_t key = Keys::start(p, keys, first) / B::kKeys * B::kKeys; key < last; key += B::kKeys) {
      int32_t n = last - key < B::kKeys ? last - key : int32_t(B::kKeys);
      C weights[B::kPairs], slopes[B::kPairs];
      Gradients<T, kR, kK, kC, kLayout>::tile(ctx, shared, all, head, head_index, keys, first, rows, key, n, scale,
                                              weights, slopes);
      B::keep_by_key(shared, ty, tx, slopes);
      B::template combine<kR>(ctx, shared, p, p.k, lines_of<kLayout>(p, head, p.k, false, key, n), column, p.dim, C(1),
                              false, result);
    }
    BCU_UNROLL for (int x = 0; x < B::kRowResults; ++x) result[x] *= scale;
    B::template store<kR>(p, p.dq, lines_of<kLayout>(p, head, p.dq, true, first, rows), tid, column, p.dim, result);
  }
};

template <class T, int kR, int kK, int kC, int kLayout>
struct KeyGradientTiles {
  using Params = SimtParams<kLayout>;
  using B = Blocks<T, kR, kK, kC, kLayout>;
  using C = simt::ComputeOf<T>;
  enum : int { kThreads = 256, kShared = B::kShared };

  // The first row that uses a key, down to a whole tile.
  BCU_DEVICE int32_t first_row(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Head& head, BCU_THREAD const Keys& keys,
                               int32_t key) {
    int64_t position = int64_t(key) - keys.diagonal - p.right;
    if (p.right < 0 || position <= 0) return 0;
    int64_t row = position * p.group.divisor;
    return row >= head.rows ? head.rows : int32_t(row) / B::kRows * B::kRows;
  }
  // Where the rows end that use a key.
  BCU_DEVICE int32_t last_row(BCU_CONSTANT SimtProblem& p, BCU_THREAD const Head& head, BCU_THREAD const Keys& keys,
                              int32_t key) {
    if (p.left < 0) return head.rows;
    int64_t row = (int64_t(key) - keys.diagonal + p.left + 1) * p.group.divisor;
    return row <= 0 ? 0 : row >= head.rows ? head.rows : int32_t(row);
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* memory, BCU_CONSTANT Params& all) {
    BCU_CONSTANT SimtProblem& p = all.problem;
    BCU_SHARED C* shared = (BCU_SHARED C*)memory;
    int tid = int(ctx.tid()), tx = tid % kSide, ty = tid / kSide;
    int64_t heads = int64_t(p.batch) * p.kv_heads, rest = int64_t(ctx.bid_x()) / heads;
    int64_t head_index = int64_t(ctx.bid_x()) - rest * heads;
    Head head = Place<kLayout>::of(all, head_index);
    int32_t column = int32_t(rest % p.chunks) * B::kColumns, key = int32_t(rest / p.chunks) * B::kKeys;
    if (kLayout == kPacked && key >= head.k_len) return;
    int32_t n = head.k_len - key < B::kKeys ? head.k_len - key : int32_t(B::kKeys);
    Keys keys = Keys::of(p, head);
    int32_t valid = keys.valid - key < n ? keys.valid - key : n;
    C scale = scale_of<C>(p), dk[B::kKeyResults], dv[B::kKeyResults];
    BCU_UNROLL for (int x = 0; x < B::kKeyResults; ++x) dk[x] = dv[x] = C(0);
    int32_t end = valid > 0 ? last_row(p, head, keys, key + valid - 1) : 0;
    for (int32_t row = first_row(p, head, keys, key); row < end; row += B::kRows) {
      int32_t rows = head.rows - row < B::kRows ? head.rows - row : int32_t(B::kRows);
      C weights[B::kPairs], slopes[B::kPairs];
      uint32_t dropped = Gradients<T, kR, kK, kC, kLayout>::tile(ctx, shared, all, head, head_index, keys, row, rows,
                                                                 key, valid, scale, weights, slopes);
      if (drops(all)) Place<kLayout>::template drop<B::kPairs>(all, dropped, weights);
      B::keep_by_row(shared, ty, tx, weights);
      B::template combine<kK>(ctx, shared, p, p.dout, lines_of<kLayout>(p, head, p.dout, true, row, rows), column,
                              p.dim_v, C(1), false, dv);
      B::keep_by_row(shared, ty, tx, slopes);
      B::template combine<kK>(ctx, shared, p, p.q, lines_of<kLayout>(p, head, p.q, true, row, rows), column, p.dim,
                              scale, false, dk);
    }
    B::template store<kK>(p, p.dk, lines_of<kLayout>(p, head, p.dk, false, key, n), tid, column, p.dim, dk);
    B::template store<kK>(p, p.dv, lines_of<kLayout>(p, head, p.dv, false, key, n), tid, column, p.dim_v, dv);
  }
};

template <class T, int kR, int kK, int kC>
using QueryGradient = QueryGradientTiles<T, kR, kK, kC, kDense>;
template <class T, int kR, int kK, int kC>
using PackedQueryGradient = QueryGradientTiles<T, kR, kK, kC, kPacked>;
template <class T, int kR, int kK, int kC>
using KeyGradients = KeyGradientTiles<T, kR, kK, kC, kDense>;
template <class T, int kR, int kK, int kC>
using PackedKeyGradients = KeyGradientTiles<T, kR, kK, kC, kPacked>;

}  // namespace baracuda::attention
