// Matrix products on Metal by matrices of 8 x 8 that a warp multiplies: tiles and slices are those of Tiled, a warp has
// kRows x kColumns of a tile.
#pragma once
#include "ops/matmul/simt.h"
#include "simt/square_matrix.h"

namespace baracuda::matmul {

// Sums are built in blocks of kBlock products. Their ends are added up in registers of the threads that write them:
// a lane has one column of its warp's part, and all its rows.
template <class T>
struct SquareTiled {
  using Params = TiledParams;
  using Fma = Tiled<T, 4>;
  using In = typename Fma::In;
  using C = typename Fma::C;
  using Square = simt::SquareMatrix<C>;
  enum : int { kThreads = Fma::kThreads, kTile = Fma::kTile, kPitch = Fma::kPitch, kDepth = Fma::kDepth };
  enum : int { kSlice = Fma::kSlice, kLoads = Fma::kLoads, kSide = 8, kRows = 16, kColumns = 32 };
  enum : int { kM = int(kRows) / int(kSide), kN = int(kColumns) / int(kSide), kEach = kM * kN };
  enum : int { kLines = int(kSide) * int(kColumns) };  // what a warp hands over at once
  enum : int { kSlices = 4 * int(kSlice), kShared = kSlices + int(kThreads) / 32 * int(kLines) };

  BCU_DEVICE void clear(BCU_THREAD Square* sum) { BCU_UNROLL for (int x = 0; x < kEach; ++x) Square::clear(sum[x]); }

  BCU_DEVICE void multiply(BCU_THREAD const simt::Context& ctx, BCU_SHARED const C* a, BCU_SHARED const C* b,
                           BCU_THREAD Square* sum) {
    BCU_UNROLL for (int k = 0; k < kDepth; k += kSide) {
      Square x[kM], y[kN];
      BCU_UNROLL for (int i = 0; i < kM; ++i)
          Square::template load<true>(ctx, x[i], a + k * kPitch + i * kSide, kPitch);
      BCU_UNROLL for (int j = 0; j < kN; ++j)
          Square::template load<false>(ctx, y[j], b + k * kPitch + j * kSide, kPitch);
      BCU_UNROLL for (int i = 0; i < kM; ++i) BCU_UNROLL for (int j = 0; j < kN; ++j)
          Square::add(ctx, sum[i * kN + j], x[i], y[j]);
    }
  }

  // Adds a block's sums to the lane's totals.
  BCU_DEVICE void finish(BCU_THREAD const simt::Context& ctx, BCU_THREAD Square* sum, BCU_SHARED C* lines,
                         BCU_THREAD C* total) {
    int lane = int(ctx.lane());
    BCU_UNROLL for (int i = 0; i < kM; ++i) {
      BCU_UNROLL for (int j = 0; j < kN; ++j) Square::store(ctx, sum[i * kN + j], lines + j * kSide, kColumns);
      simt::warp_sync(ctx);
      BCU_UNROLL for (int r = 0; r < kSide; ++r) total[i * kSide + r] += lines[r * kColumns + lane];
      simt::warp_sync(ctx);
    }
    clear(sum);
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    BCU_SHARED C* slices = (BCU_SHARED C*)shared;
    int tid = int(ctx.tid()), warp = int(ctx.warp());
    int row = warp / (kTile / kColumns) * kRows, column = warp % (kTile / kColumns) * kColumns;
    BCU_SHARED C* lines = slices + kSlices + warp * kLines;
    typename Fma::Source from = Fma::start(ctx, p);
    Square sum[kEach];
    C total[kRows], next_a[kLoads], next_b[kLoads];
    clear(sum);
    BCU_UNROLL for (int x = 0; x < kRows; ++x) total[x] = C(0);
    int64_t steps = p.parts * ((p.k + kDepth - 1) / kDepth);
    bool whole = false;  // the slice that was read last ends a block of products
    for (int64_t step = 0; step <= steps; ++step) {
      bool ends = whole;
      if (step < steps) whole = Fma::fetch(p, from, tid, next_a, next_b);
      if (step > 0) {
        BCU_SHARED const C* now = slices + (step - 1) % 2 * 2 * kSlice;
        multiply(ctx, now + row, now + kSlice + column, sum);
        if (ends) finish(ctx, sum, lines, total);
      }
      if (step < steps) {
        BCU_SHARED C* next = slices + step % 2 * 2 * kSlice;
        Fma::write(next_a, p.a_along_k != 0, tid, next);
        Fma::write(next_b, p.b_along_k != 0, tid, next + kSlice);
      }
      simt::barrier(ctx);
    }
    Ending<T> ending = Ending<T>::start(p, from.batch);
    BCU_NO_UNROLL for (int i = 0; i < kRows; ++i) {
      Ending<T>::put(p, ending, from.i0 + row + i, from.j0 + column + int(ctx.lane()), total[0]);
      BCU_UNROLL for (int x = 0; x < kRows - 1; ++x) total[x] = total[x + 1];
    }
  }
};

}  // namespace baracuda::matmul
