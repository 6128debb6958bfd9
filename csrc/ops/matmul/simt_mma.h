// Matrix products of f16 and bf16 on tensor cores: a block computes a tile of kTile x kTile elements, a warp the
// fragments of kTile / 2 of its rows, from slices of 32 products that are copied ahead of their use.
#pragma once
#include "ops/matmul/simt.h"
#include "simt/mma.h"

namespace baracuda::matmul {

// Where chunks of 8 elements of a slice lie: kTile lines (rows of A or columns of B) by kDepth products. Their places
// are swapped such that the 8 lanes that load_matrices reads together never meet in a bank.
template <int kTile, bool kAlongK>
struct Slice {
  enum : int { kDepth = 32, kChunks = kTile * kDepth / 8, kLines = !kAlongK };  // kLines: a chunk is of 8 lines
  BCU_DEVICE int place(int line, int k) {
    int chunk = (kAlongK ? k : line) / 8, across = kAlongK ? line : k;
    return kAlongK ? across * kDepth + (chunk ^ ((across >> 1) & 3)) * 8 : across * kTile + (chunk ^ (across & 7)) * 8;
  }
  BCU_DEVICE int line_of(int chunk) { return kAlongK ? chunk / (kDepth / 8) : chunk % (kTile / 8) * 8; }
  BCU_DEVICE int depth_of(int chunk) { return kAlongK ? chunk % (kDepth / 8) * 8 : chunk / (kTile / 8); }

  // The 16 lines and 16 products from (line, k) on. kFirst: the second matrix has the next 8 lines (as A's fragments),
  // otherwise the next 8 products (as B's, two at a time).
  template <bool kFirst>
  BCU_DEVICE void fragment(BCU_THREAD const simt::Context& ctx, BCU_SHARED const uint16_t* slice, int line, int k,
                           BCU_THREAD uint32_t* out) {
    int matrix = int(ctx.lane() / 8u), row = int(ctx.lane() % 8u);
    line += (kFirst ? matrix & 1 : matrix >> 1) * 8, k += (kFirst ? matrix >> 1 : matrix & 1) * 8;
    simt::load_matrices<!kAlongK>(ctx, slice + (kAlongK ? place(line + row, k) : place(line, k + row)), out);
  }
};

// Sums are built in blocks of kBlock products, whatever the tile.
template <class T, int kTile_, bool kALongK, bool kBLongK>
struct MmaTiled {
  using Params = TiledParams;
  using Fma = Tiled<T, 8>;
  using A = Slice<kTile_, kALongK>;
  using B = Slice<kTile_, kBLongK>;
  enum : int { kTile = kTile_, kThreads = 2 * kTile, kBlocks = 1, kDepth = A::kDepth, kStages = 3, kBlock = 256 };
  enum : int { kColumnWarps = kThreads / 64, kRows = kTile / 2, kColumns = kTile / kColumnWarps };  // of a warp
  enum : int { kM = kRows / 16, kN = kColumns / 8, kSlice = kTile * kDepth, kShared = kStages * kSlice };

  // What is copied next.
  struct Source {
    BCU_GLOBAL const T* a;
    BCU_GLOBAL const T* b;
    int64_t part, k, rows, columns;  // rows and columns that are left from the tile's first on
  };

  template <class S>
  BCU_DEVICE void copy(BCU_THREAD simt::CopyQueue& queue, BCU_GLOBAL const T* x, int64_t line_stride, int64_t k_stride,
                       int64_t lines, int64_t depth, int tid, BCU_SHARED uint16_t* slice) {
    BCU_UNROLL for (int load = 0; load < int(S::kChunks) / int(kThreads); ++load) {
      int chunk = tid + load * kThreads, line = S::line_of(chunk), k = S::depth_of(chunk);
      int64_t left = S::kLines ? lines - line : depth - k;
      bool inside = line < lines && k < depth;
      int elements = !inside ? 0 : left < 8 ? int(left) : 8;
      queue.copy(slice + S::place(line, k), inside ? x + line * line_stride + k * k_stride : x, 2 * elements);
    }
  }

  BCU_DEVICE void copy_next(BCU_CONSTANT Params& p, BCU_THREAD simt::CopyQueue& queue, BCU_THREAD Source& from, int tid,
                            BCU_SHARED uint16_t* stage) {
    if (from.part < p.parts) {
      BCU_GLOBAL const T* a = from.a + Offsets::of(from.part, p.part_rank, p.part_shape, p.as.part);
      BCU_GLOBAL const T* b = from.b + Offsets::of(from.part, p.part_rank, p.part_shape, p.bs.part);
      int64_t depth = p.k - from.k;
      copy<A>(queue, a + from.k * p.as.column, p.as.row, p.as.column, from.rows, depth, tid, stage);
      copy<B>(queue, b + from.k * p.bs.row, p.bs.column, p.bs.row, from.columns, depth, tid, stage + kSlice);
      from.k += kDepth;
      if (from.k >= p.k) ++from.part, from.k = 0;
    }
    queue.commit();
  }

  BCU_DEVICE void multiply(BCU_THREAD const simt::Context& ctx, BCU_SHARED const uint16_t* stage, int row, int column,
                           BCU_THREAD float* sum) {
    BCU_UNROLL for (int k = 0; k < kDepth; k += 16) {
      uint32_t a[kM][4], b[kN / 2][4];
      BCU_UNROLL for (int i = 0; i < kM; ++i) A::template fragment<true>(ctx, stage, row + i * 16, k, a[i]);
      BCU_UNROLL for (int j = 0; j < kN / 2; ++j)
          B::template fragment<false>(ctx, stage + kSlice, column + j * 16, k, b[j]);
      BCU_UNROLL for (int i = 0; i < kM; ++i) BCU_UNROLL for (int j = 0; j < kN; ++j)
          simt::Mma<T>::add(ctx, a[i], b[j / 2] + j % 2 * 2, sum + (i * kN + j) * 4);
    }
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    BCU_SHARED uint16_t* stages = (BCU_SHARED uint16_t*)shared;
    int tid = int(ctx.tid()), warp = int(ctx.warp()), lane = int(ctx.lane());
    int row = warp / kColumnWarps * kRows, column = warp % kColumnWarps * kColumns;
    int64_t tiles = p.row_tiles * p.column_tiles, batch = int64_t(ctx.bid_x()) / tiles, tile_row, tile_column;
    Fma::tile_of(p, int64_t(ctx.bid_x()) - batch * tiles, tile_row, tile_column);
    int64_t i0 = tile_row * kTile, j0 = tile_column * kTile;
    Source from;
    from.a = (BCU_GLOBAL const T*)p.a + Offsets::of(batch, p.batch_rank, p.batch_shape, p.as.batch) + i0 * p.as.row;
    from.b = (BCU_GLOBAL const T*)p.b + Offsets::of(batch, p.batch_rank, p.batch_shape, p.bs.batch) + j0 * p.bs.column;
    from.part = p.k > 0 ? 0 : p.parts, from.k = 0, from.rows = p.m - i0, from.columns = p.n - j0;
    float sum[kM * kN * 4], total[kM * kN * 4];
    BCU_UNROLL for (int x = 0; x < kM * kN * 4; ++x) sum[x] = total[x] = 0.0f;

    simt::CopyQueue queue;
    for (int stage = 0; stage < kStages - 1; ++stage) copy_next(p, queue, from, tid, stages + stage * 2 * kSlice);
    int64_t slices = (p.k + kDepth - 1) / kDepth, steps = p.parts * slices, done = 0;
    int now = 0, next = kStages - 1;
    for (int64_t step = 0; step < steps; ++step) {
      queue.template wait<kStages - 2>();
      simt::barrier(ctx);
      copy_next(p, queue, from, tid, stages + next * 2 * kSlice);
      multiply(ctx, stages + now * 2 * kSlice, row, column, sum);
      now = now + 1 == kStages ? 0 : now + 1, next = next + 1 == kStages ? 0 : next + 1;
      ++done;
      if (done == slices || done % (kBlock / kDepth) == 0) {
        BCU_UNROLL for (int x = 0; x < kM * kN * 4; ++x) total[x] += sum[x], sum[x] = 0.0f;
      }
      done = done == slices ? 0 : done;
    }

    // Fragments move up in turn, so that what becomes of a sum is compiled for one row of them.
    Ending<T> ending = Ending<T>::start(p, batch);
    i0 += row + lane / 4, j0 += column + lane % 4 * 2;
    BCU_NO_UNROLL for (int i = 0; i < kM; ++i) {
      BCU_UNROLL for (int x = 0; x < kN * 4; ++x)
          Ending<T>::put(p, ending, i0 + i * 16 + x % 4 / 2 * 8, j0 + x / 4 * 8 + x % 2, total[x]);
      BCU_UNROLL for (int x = 0; x < (kM - 1) * kN * 4; ++x) total[x] = total[x + kN * 4];
    }
  }
};

}  // namespace baracuda::matmul
