// Products with few rows on GPUs, which read B once: every thread reads B in packs of 16 bytes, along k or along its
// columns, whichever way B lies.
#pragma once
#include "ops/matmul/simt.h"

// Loops that nvcc would unroll into more values than there are registers.
#if defined(__CUDACC__)
#define BCU_ROLLED _Pragma("unroll 1")
#else
#define BCU_ROLLED
#endif

namespace baracuda::matmul {

enum : int { kThinRows = 8, kThinDepth = 1 << 17 };  // longer sums go to the tiles

// B's columns are contiguous in k, and so are A's rows: a warp per column.
template <class T, int kRows>
struct ThinDots {
  using Params = TiledParams;
  using C = simt::ComputeOf<T>;
  using S = simt::Stored<T>;
  using Values = simt::Pack<T>;
  enum : int { kThreads = 256, kShared = 0, kCount = Values::kCount };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t column = int64_t(ctx.bid_x()) % p.column_tiles * ctx.warps() + ctx.warp();
    int64_t batch = int64_t(ctx.bid_x()) / p.column_tiles, own = column < p.n ? column : p.n - 1;
    BCU_GLOBAL const T* a = (BCU_GLOBAL const T*)p.a + Offsets::of(batch, p.batch_rank, p.batch_shape, p.as.batch);
    BCU_GLOBAL const T* b =
        (BCU_GLOBAL const T*)p.b + Offsets::of(batch, p.batch_rank, p.batch_shape, p.bs.batch) + own * p.bs.column;
    C sum[kRows];
    BCU_UNROLL for (int r = 0; r < kRows; ++r) sum[r] = C(0);
    for (int64_t k = int64_t(ctx.lane()) * kCount; k < p.k; k += 32 * kCount) {
      Values y = *(BCU_GLOBAL const Values*)(b + k);
      BCU_UNROLL for (int r = 0; r < kRows; ++r) {
        Values x = *(BCU_GLOBAL const Values*)(a + (r < p.m ? r : 0) * p.as.row + k);
        BCU_UNROLL for (int i = 0; i < kCount; ++i) sum[r] += S::load(x.v[i]) * S::load(y.v[i]);
      }
    }
    BCU_UNROLL for (int r = 0; r < kRows; ++r) sum[r] = simt::warp_reduce<simt::Add>(ctx, sum[r]);
    Ending<T> ending = Ending<T>::start(p, batch);
    BCU_UNROLL for (int r = 0; r < kRows; ++r) if (ctx.lane() == 0u) Ending<T>::put(p, ending, r, column, sum[r]);
  }
};

// B's rows are contiguous: 8 lanes side by side take a pack of columns each, and 32 such groups share k.
template <class T, int kRows>
struct ThinColumns {
  using Params = TiledParams;
  using C = simt::ComputeOf<T>;
  using S = simt::Stored<T>;
  using Values = simt::Pack<T>;
  enum : int { kThreads = 256, kCount = Values::kCount, kColumns = 8 * kCount, kGroups = 32, kSums = kRows * kCount };
  enum : int { kShared = kGroups * kColumns * int(sizeof(C) / 4) };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* memory, BCU_CONSTANT Params& p) {
    BCU_SHARED C* shared = (BCU_SHARED C*)memory;
    int tid = int(ctx.tid()), lane = tid % 8 * kCount, group = tid / 8;
    int64_t batch = int64_t(ctx.bid_x()) / p.column_tiles;
    int64_t first = int64_t(ctx.bid_x()) % p.column_tiles * kColumns, column = first + lane;
    BCU_GLOBAL const T* a = (BCU_GLOBAL const T*)p.a + Offsets::of(batch, p.batch_rank, p.batch_shape, p.as.batch);
    BCU_GLOBAL const T* b =
        (BCU_GLOBAL const T*)p.b + Offsets::of(batch, p.batch_rank, p.batch_shape, p.bs.batch) + column;
    C sum[kSums];
    BCU_UNROLL for (int x = 0; x < kSums; ++x) sum[x] = C(0);
    if (column < p.n) {
      BCU_ROLLED for (int64_t k = group; k < p.k; k += kGroups) {
        Values y = *(BCU_GLOBAL const Values*)(b + k * p.bs.row);
        BCU_UNROLL for (int r = 0; r < kRows; ++r) {
          C x = S::load(a[(r < p.m ? r : 0) * p.as.row + k * p.as.column]);
          BCU_UNROLL for (int i = 0; i < kCount; ++i) sum[r * kCount + i] += x * S::load(y.v[i]);
        }
      }
    }
    Ending<T> ending = Ending<T>::start(p, batch);
    BCU_UNROLL for (int r = 0; r < kRows; ++r) {
      if (r < p.m) {  // the same for all threads
        BCU_UNROLL for (int i = 0; i < kCount; ++i) shared[group * kColumns + lane + i] = sum[r * kCount + i];
        simt::barrier(ctx);
        if (tid < kColumns && first + tid < p.n) {
          C total = C(0);
          BCU_ROLLED for (int g = 0; g < kGroups; g += 4) {
            BCU_UNROLL for (int u = 0; u < 4; ++u) total += shared[(g + u) * kColumns + tid];
          }
          Ending<T>::put(p, ending, r, first + tid, total);
        }
        simt::barrier(ctx);
      }
    }
  }
};

}  // namespace baracuda::matmul
