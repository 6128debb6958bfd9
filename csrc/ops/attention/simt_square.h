// Attention forward on Metal by matrices of 8 x 8 that a warp multiplies (simt/square_matrix.h). Tiles, the softmax and
// what a thread has of the scores are those of ForwardTiles; 4 x 2 warps share a tile's scores, and its results.
#pragma once
#include "ops/attention/simt_forward.h"
#include "simt/square_matrix.h"

namespace baracuda::attention {

// Of a result a lane has kEach whole columns of its warp's rows. What rows are multiplied by goes through shared
// memory.
template <class T, int kC>
struct SquareForward {
  using Params = SimtParams<kDense>;
  using F = ForwardTiles<T, 4, 4, kC, kDense>;
  using B = Blocks<T, 4, 4, kC, kDense>;
  using C = simt::ComputeOf<T>;
  using Square = simt::SquareMatrix<C>;
  using Rows = typename F::Rows;
  // A warp has kM x kKeyN matrices of scores, and kM x kN of results, which leave in strips.
  enum : int {
    kThreads = 256,
    kR = 4,
    kK = 4,
    kEdge = 8,
    kStrip = 32,
    kStripN = kStrip / kEdge,
    kPitch = B::kRows + 4,
    kDepth = B::kSlice,
    kWarpRows = 16,
    kM = kWarpRows / kEdge,
    kWarpKeys = 32,
    kKeyN = kWarpKeys / kEdge,
    kKeySums = kM * kKeyN,
    kWarpColumns = B::kColumns / 2,
    kN = kWarpColumns / kEdge,
    kSums = kM * kN,
    kEach = kWarpColumns / kStrip,
    kResults = kWarpRows * kEach,
    kFactors = B::kSlices + B::kWeights,
    kShared = kFactors + B::kRows
  };

  BCU_DEVICE int row_of(BCU_THREAD const simt::Context& ctx) { return int(ctx.warp()) / 2 * kWarpRows; }
  BCU_DEVICE int column_of(BCU_THREAD const simt::Context& ctx) { return int(ctx.warp()) % 2 * kWarpColumns; }

  // sum += a b of kDepth lines each: a as [line][row], b as [line][column].
  template <int kWide>
  BCU_DEVICE void multiply(BCU_THREAD const simt::Context& ctx, BCU_SHARED const C* a, BCU_SHARED const C* b, int pitch,
                           BCU_THREAD Square* sum) {
    BCU_UNROLL for (int k = 0; k < kDepth; k += kEdge) {
      Square x[kM];
      BCU_UNROLL for (int i = 0; i < kM; ++i)
          Square::template load<true>(ctx, x[i], a + k * kPitch + i * kEdge, kPitch);
      BCU_UNROLL for (int j = 0; j < kWide; ++j) {
        Square y;
        Square::template load<false>(ctx, y, b + k * pitch + j * kEdge, pitch);
        BCU_UNROLL for (int i = 0; i < kM; ++i) Square::add(ctx, sum[i * kWide + j], x[i], y);
      }
    }
  }

  // A thread's scores: kR rows of kK keys.
  BCU_DEVICE void dots(BCU_THREAD const simt::Context& ctx, BCU_SHARED C* shared, BCU_CONSTANT SimtProblem& p, Lines x,
                       Lines y, C scale, BCU_THREAD C* scores) {
    BCU_SHARED C* keys = shared + kDepth * kPitch;
    BCU_SHARED C* weights = B::weights(shared);
    int tid = int(ctx.tid()), row = row_of(ctx), key = int(ctx.warp()) % 2 * kWarpKeys;
    Square sum[kKeySums];
    BCU_UNROLL for (int x = 0; x < kKeySums; ++x) Square::clear(sum[x]);
    for (int32_t c0 = 0; c0 < p.dim; c0 += kDepth) {
      simt::barrier(ctx);
      B::template stage<kR, T>(p, p.q, x, tid, c0, p.dim, scale, shared, B::places(shared));
      B::template stage<kK, T>(p, p.k, y, tid, c0, p.dim, C(1), keys, B::places(shared));
      simt::barrier(ctx);
      multiply<kKeyN>(ctx, shared + row, keys + key, kPitch, sum);
    }
    BCU_UNROLL for (int i = 0; i < kM; ++i) BCU_UNROLL for (int j = 0; j < kKeyN; ++j)
        Square::store(ctx, sum[i * kKeyN + j], weights + (row + i * kEdge) * kPitch + key + j * kEdge, kPitch);
    simt::barrier(ctx);
    BCU_UNROLL for (int i = 0; i < kR; ++i)
        Group<kK>::read(weights + (tid / kSide * kR + i) * kPitch + tid % kSide * kK, scores + i * kK);
    simt::barrier(ctx);
  }

  // As Blocks::combine does, of the block's lines that lie in shared memory.
  BCU_DEVICE void combine_limited(BCU_SHARED const C* weights, BCU_SHARED const C* lines, BCU_THREAD C* result) {
    BCU_NO_UNROLL for (int n = 0; n < kDepth; ++n) {
      C b[kEach];
      BCU_UNROLL for (int e = 0; e < kEach; ++e) b[e] = lines[n * B::kColumnPitch + e * kStrip];
      BCU_UNROLL for (int r = 0; r < kWarpRows; r += kR) {
        C a[kR];
        Group<kR>::read(weights + n * kPitch + r, a);
        BCU_UNROLL for (int i = 0; i < kR; ++i) BCU_UNROLL for (int e = 0; e < kEach; ++e)
            result[(r + i) * kEach + e] += a[i] < C(0) ? C(0) : a[i] * b[e];
      }
    }
  }

  // Adds a tile's sums to the lane's columns, by way of the slices.
  BCU_DEVICE void add_sums(BCU_THREAD const simt::Context& ctx, BCU_SHARED C* shared, BCU_THREAD Square* sum,
                           BCU_THREAD C* result) {
    BCU_SHARED C* strip = shared + int(ctx.warp()) * (kEdge * kStrip);
    int lane = int(ctx.lane());
    BCU_UNROLL for (int i = 0; i < kM; ++i) BCU_UNROLL for (int e = 0; e < kEach; ++e) {
      BCU_UNROLL for (int j = 0; j < kStripN; ++j)
          Square::store(ctx, sum[i * kN + e * kStripN + j], strip + j * kEdge, kStrip);
      simt::warp_sync(ctx);
      BCU_UNROLL for (int r = 0; r < kEdge; ++r) result[(i * kEdge + r) * kEach + e] += strip[r * kStrip + lane];
      simt::warp_sync(ctx);
    }
  }

  // result = result * factor of its row + sum over keys of w[key][row] v[key][column]. Keys that only some rows may use
  // are added one by one: whatever they hold stays out of the others.
  BCU_DEVICE void combine(BCU_THREAD const simt::Context& ctx, BCU_SHARED C* shared, BCU_CONSTANT SimtProblem& p,
                          Lines z, int32_t column, bool limited, BCU_THREAD C* result) {
    BCU_SHARED const C* weights = B::weights(shared) + row_of(ctx);
    BCU_SHARED const C* factors = shared + kFactors + row_of(ctx);
    int own = column_of(ctx);
    simt::barrier(ctx);
    BCU_UNROLL for (int x = 0; x < kResults; ++x) result[x] *= factors[x / kEach];
    Square sum[kSums];
    BCU_UNROLL for (int x = 0; x < kSums; ++x) Square::clear(sum[x]);
    for (int32_t n0 = 0; n0 < z.count; n0 += kDepth) {
      B::stage_lines(shared, p, p.v, z, int(ctx.tid()), n0, column, p.dim_v, C(1));
      simt::barrier(ctx);
      if (limited) {
        combine_limited(weights + n0 * kPitch, shared + own + int(ctx.lane()), result);
      } else {
        multiply<kN>(ctx, weights + n0 * kPitch, shared + own, B::kColumnPitch, sum);
      }
      simt::barrier(ctx);
    }
    if (!limited) add_sums(ctx, shared, sum, result);
  }

  // A number of each row that its first thread has.
  BCU_DEVICE void share(BCU_SHARED C* shared, int tid, BCU_THREAD const C* values) {
    if (tid % kSide != 0) return;
    BCU_UNROLL for (int i = 0; i < kR; ++i) shared[kFactors + tid / kSide * kR + i] = values[i];
  }

  BCU_DEVICE void finish(BCU_THREAD const simt::Context& ctx, BCU_SHARED const C* shared, BCU_CONSTANT SimtProblem& p,
                         Lines lines, int32_t column, BCU_THREAD const C* result) {
    int32_t first = column + column_of(ctx) + int(ctx.lane());
    int row = row_of(ctx);
    BCU_UNROLL for (int r = 0; r < kWarpRows; ++r) {
      if (row + r >= lines.count) continue;
      C total = shared[kFactors + row + r];
      int64_t at = lines.base + Head::line(p, p.out, true, lines.first + row + r);
      BCU_UNROLL for (int e = 0; e < kEach; ++e) {
        int32_t to = first + e * kStrip;
        if (to < p.dim_v)
          ((BCU_GLOBAL T*)p.out.data)[at + to * p.out.column] =
              B::S::store(total == C(0) ? C(0) : result[r * kEach + e] / total);
      }
    }
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* memory, BCU_CONSTANT Params& all) {
    BCU_CONSTANT SimtProblem& p = all.problem;
    BCU_SHARED C* shared = (BCU_SHARED C*)memory;
    int tid = int(ctx.tid()), tx = tid % kSide, ty = tid / kSide;
    typename F::Work w = F::work_of(ctx, all);
    C scale = scale_of<C>(p), result[kResults];
    Rows rows;
    F::start_rows(p, w, tid, rows);
    BCU_UNROLL for (int x = 0; x < kResults; ++x) result[x] = C(0);
    Lines queries = lines_of<kDense>(p, w.head, p.q, true, w.first, w.count);
    for (int32_t key = w.begin; key < w.end; key += B::kKeys) {
      int32_t n = w.end - key < B::kKeys ? w.end - key : int32_t(B::kKeys);
      uint32_t dropped = 0u;
      if (drops(all)) dropped = Place<kDense>::template dropped<kR, kK>(all, w.head, w.first + ty * kR, key + tx * kK);
      C scores[B::kPairs], change[kR] = {C(1), C(1), C(1), C(1)};
      dots(ctx, shared, p, queries, lines_of<kDense>(p, w.head, p.k, false, key, n), scale, scores);
      bool limited = F::template weigh<1>(ctx, all, w, rows, key, n, dropped, scores, change);
      B::keep_by_key(shared, ty, tx, scores);
      share(shared, tid, change);
      combine(ctx, shared, p, lines_of<kDense>(p, w.head, p.v, false, key, n), w.column, limited, result);
    }
    Lines out = lines_of<kDense>(p, w.head, p.out, true, w.first, w.count);
    F::keep_lse(p, w.head, out, tid, w.column, rows);
    simt::barrier(ctx);
    share(shared, tid, rows.total);
    simt::barrier(ctx);
    finish(ctx, shared, p, out, w.column, result);
  }
};

}  // namespace baracuda::attention
