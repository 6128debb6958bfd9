// Convolutions and their gradients on GPUs, as products whose right matrix is gathered: a block computes a tile of
// channels by columns from slices in shared memory, a thread 4 x 4 sums of it.
#pragma once
#include "simt/space.h"

namespace baracuda::conv {

enum : int { kPositions = 3, kRight = 2 + kPositions };

// Both sides of the right matrix walk the tensor that it is gathered from, and say where in it: positions of both are
// added up, and outside the tensor there is 0.
struct GatherParams {
  BCU_GLOBAL const void* a;
  BCU_GLOBAL const void* b;
  BCU_GLOBAL const void* bias;  // null: none
  BCU_GLOBAL void* out;
  simt::Space<kRight> terms;    // of a sum: offsets in a and b, positions
  simt::Space<kRight> columns;  // offsets in out and b, positions
  int64_t rows, a_row, out_row, bias_step;
  int64_t a_group, b_group, out_group;
  int64_t size[kPositions], begin[kPositions], begin_b;  // of b: sizes, and where the first term of column 0 is
  int64_t row_tiles, column_tiles;
};

// Sums are built in blocks of kBlock products, which bounds their error for long ones.
template <class T>
struct Gather {
  using Params = GatherParams;
  using S = simt::Stored<T>;
  using C = simt::ComputeOf<T>;
  enum : int { kThreads = 256, kTile = 64, kPitch = kTile + 4, kDepth = 16, kBlock = 256, kLoads = 4 };
  enum : int { kSlice = kDepth * kPitch, kShared = 2 * kSlice * int(sizeof(C) / 4) };

  BCU_DEVICE C load_b(BCU_CONSTANT Params& p, BCU_GLOBAL const T* b, BCU_THREAD const int64_t* column, int64_t term) {
    int64_t at[kRight];
    simt::locate(p.terms, term, at);
    bool inside = true;
    BCU_UNROLL for (int i = 0; i < kPositions; ++i) {
      int64_t position = p.begin[i] + column[2 + i] + at[2 + i];
      inside = inside && position >= 0 && position < p.size[i];
    }
    return inside ? S::load(b[p.begin_b + column[1] + at[1]]) : C(0);
  }

  BCU_DEVICE void multiply(BCU_SHARED const C* a, BCU_SHARED const C* b, int ty, int tx, BCU_THREAD C* sum) {
    BCU_UNROLL for (int k = 0; k < kDepth; ++k) {
      C x[4], y[4];
      BCU_UNROLL for (int i = 0; i < 4; ++i) x[i] = a[k * kPitch + ty * 4 + i], y[i] = b[k * kPitch + tx + 16 * i];
      BCU_UNROLL for (int i = 0; i < 4; ++i) BCU_UNROLL for (int j = 0; j < 4; ++j) sum[i * 4 + j] += x[i] * y[j];
    }
  }

  BCU_DEVICE void put(BCU_CONSTANT Params& p, int64_t group, int64_t row, int64_t column, C sum) {
    if (row >= p.rows || column >= p.columns.count) return;
    int64_t at[kRight];
    simt::locate(p.columns, column, at);
    if (p.bias) sum += S::load(((BCU_GLOBAL const T*)p.bias)[(group * p.rows + row) * p.bias_step]);
    ((BCU_GLOBAL T*)p.out)[group * p.out_group + row * p.out_row + at[0]] = S::store(sum);
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    BCU_SHARED C* slice_a = (BCU_SHARED C*)shared;
    BCU_SHARED C* slice_b = slice_a + kSlice;
    int tid = int(ctx.tid()), tx = tid % 16, ty = tid / 16;
    int64_t tile = int64_t(ctx.bid_x()), per_group = p.row_tiles * p.column_tiles, group = tile / per_group;
    int64_t i0 = (tile - group * per_group) / p.column_tiles * kTile, j0 = tile % p.column_tiles * kTile;
    BCU_GLOBAL const T* a = (BCU_GLOBAL const T*)p.a + group * p.a_group;
    BCU_GLOBAL const T* b = (BCU_GLOBAL const T*)p.b + group * p.b_group;
    int64_t column[kRight];
    bool there = j0 + tid % kTile < p.columns.count;
    simt::locate(p.columns, there ? j0 + tid % kTile : 0, column);
    C sum[16], total[16];
    BCU_UNROLL for (int x = 0; x < 16; ++x) sum[x] = total[x] = C(0);
    for (int64_t k0 = 0; k0 < p.terms.count; k0 += kDepth) {
      int64_t term = k0 + tx, at[kRight];
      simt::locate(p.terms, term < p.terms.count ? term : 0, at);
      BCU_UNROLL for (int l = 0; l < kLoads; ++l) {
        int64_t row = i0 + ty + 16 * l, next = k0 + tid / kTile + 4 * l;
        slice_a[tx * kPitch + ty + 16 * l] =
            row < p.rows && term < p.terms.count ? S::load(a[row * p.a_row + at[0]]) : C(0);
        slice_b[(tid / kTile + 4 * l) * kPitch + tid % kTile] =
            there && next < p.terms.count ? load_b(p, b, column, next) : C(0);
      }
      simt::barrier(ctx);
      multiply(slice_a, slice_b, ty, tx, sum);
      if ((k0 + kDepth) % kBlock == 0 || k0 + kDepth >= p.terms.count) {
        BCU_UNROLL for (int x = 0; x < 16; ++x) total[x] += sum[x], sum[x] = C(0);
      }
      simt::barrier(ctx);
    }
    BCU_UNROLL for (int i = 0; i < 4; ++i) BCU_UNROLL for (int j = 0; j < 4; ++j)
        put(p, group, i0 + ty * 4 + i, j0 + tx + 16 * j, total[i * 4 + j]);
  }
};

struct ChannelParams {
  BCU_GLOBAL const void* dy;
  BCU_GLOBAL void* dbias;
  simt::Space<1> places;
  int64_t channel, step;
};

// The sum of a channel, by a block.
template <class T>
struct ChannelSum {
  using Params = ChannelParams;
  using S = simt::Stored<T>;
  using C = simt::ComputeOf<T>;
  enum : int { kThreads = 256, kShared = 32 * int(sizeof(C) / 4), kBlock = 64 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    BCU_GLOBAL const T* dy = (BCU_GLOBAL const T*)p.dy + int64_t(ctx.bid_x()) * p.channel;
    C total = C(0), sum = C(0);
    int terms = 0;
    for (int64_t i = int64_t(ctx.tid()); i < p.places.count; i += kThreads) {
      int64_t at[1];
      simt::locate(p.places, i, at);
      sum += S::load(dy[at[0]]);
      if (++terms % kBlock == 0) total += sum, sum = C(0);
    }
    total = simt::block_reduce<simt::Add>(ctx, total + sum, C(0), (BCU_SHARED C*)shared);
    if (ctx.tid() == 0u) ((BCU_GLOBAL T*)p.dbias)[int64_t(ctx.bid_x()) * p.step] = S::store(total);
  }
};

}  // namespace baracuda::conv
