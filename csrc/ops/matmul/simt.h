// Matrix products on GPUs: a block computes one tile of the result, a thread kSide x kSide elements of it, from slices
// of A and B in shared memory.
#pragma once
#include "ops/matmul/activation.h"
#include "simt/simt.h"

namespace baracuda::matmul {

enum : int { kBatchDims = 8 };

struct SimtMatrix {
  int64_t row, column;        // strides in elements
  int64_t batch[kBatchDims];  // of the result's batch, outermost first
  int64_t part[kBatchDims];   // of what is summed over besides k
};

struct TiledParams {
  BCU_GLOBAL const void* a;
  BCU_GLOBAL const void* b;
  BCU_GLOBAL const void* c;  // null: none
  BCU_GLOBAL const void* bias;
  BCU_GLOBAL void* d;
  SimtMatrix as, bs, cs, ds;
  int64_t bias_row, bias_column;
  int64_t m, n, k, parts;
  int64_t batch_shape[kBatchDims], part_shape[kBatchDims];
  int64_t row_tiles, column_tiles;
  BCU_GLOBAL const float* scale_a;  // of 8-bit elements; null: none
  BCU_GLOBAL const float* scale_b;
  SimtMatrix scales_a, scales_b;
  simt::Number alpha, beta;
  int32_t batch_rank, part_rank;
  int32_t a_along_k, b_along_k;  // neighbouring threads read neighbours in k
  int32_t activation;
};

// Four values that are read from shared memory at once.
template <class C>
struct alignas(16) Quad {
  C v[4];
};

// Where the element `index` of a shape lies.
struct Offsets {
  BCU_DEVICE int64_t of(int64_t index, int32_t rank, BCU_CONSTANT int64_t* shape, BCU_CONSTANT int64_t* stride) {
    int64_t offset = 0;
    for (int32_t i = rank - 1; i >= 0; --i) {
      int64_t next = index / shape[i];
      offset += (index - next * shape[i]) * stride[i];
      index = next;
    }
    return offset;
  }
};

// What is multiplied: In, stored factors; C, what they are summed in.
template <class T>
struct Factor {
  using In = T;
  using C = simt::ComputeOf<T>;
  enum : int { kDepth = 64 };  // of a slice, times kSide
  BCU_DEVICE C load(T v) { return simt::Stored<T>::load(v); }
};

// What the sums of a batch entry become, and where.
template <class T>
struct Ending {
  using C = typename Factor<T>::C;
  using S = simt::Stored<T>;
  int64_t d, c;
  C alpha, beta;

  BCU_DEVICE Ending start(BCU_CONSTANT TiledParams& p, int64_t batch) {
    Ending e;
    e.d = Offsets::of(batch, p.batch_rank, p.batch_shape, p.ds.batch);
    e.c = Offsets::of(batch, p.batch_rank, p.batch_shape, p.cs.batch);
    e.alpha = simt::number<C>(p.alpha), e.beta = simt::number<C>(p.beta);
    return e;
  }
  BCU_DEVICE void put(BCU_CONSTANT TiledParams& p, BCU_THREAD const Ending& e, int64_t i, int64_t j, C sum) {
    if (i >= p.m || j >= p.n) return;
    C v = e.alpha * sum;
    if (p.c && e.beta != C(0)) v += e.beta * S::load(((BCU_GLOBAL const T*)p.c)[e.c + i * p.cs.row + j * p.cs.column]);
    if (p.bias) v += S::load(((BCU_GLOBAL const T*)p.bias)[i * p.bias_row + j * p.bias_column]);
    ((BCU_GLOBAL T*)p.d)[e.d + i * p.ds.row + j * p.ds.column] = S::store(activate(p.activation, v));
  }
};

// Sums are built in blocks of kBlock products, which bounds their error for long ones. Their order is the same for all
// sizes of tiles.
template <class T, int kSide>
struct Tiled {
  using Params = TiledParams;
  using F = Factor<T>;
  using In = typename F::In;
  using C = typename F::C;
  enum : int { kThreads = 256, kTile = 16 * kSide, kPitch = kTile + 4, kDepth = F::kDepth / kSide, kBlock = 256 };
  enum : int { kEach = kSide * kSide, kSlice = kDepth * kPitch, kLoads = kTile * kDepth / kThreads };
  enum : int { kShared = 4 * kSlice * int(sizeof(C) / 4) };  // two slices of A and of B

  // A block's tile, and where it is in its sum.
  struct Source {
    BCU_GLOBAL const In* a;
    BCU_GLOBAL const In* b;
    int64_t batch, i0, j0;                // i0, j0: the tile's first row and column
    int64_t part, k, a_offset, b_offset;  // offsets: of the part's matrices
  };

  // Loads of one thread: elements (i, k) of a slice of A, or (k, i) of B.
  BCU_DEVICE int row_of(int load, int tid, bool along_k) {
    int at = tid + load * kThreads;
    return along_k ? at / kDepth : at % kTile;
  }
  BCU_DEVICE int depth_of(int load, int tid, bool along_k) {
    int at = tid + load * kThreads;
    return along_k ? at % kDepth : at / kTile;
  }

  BCU_DEVICE void read(BCU_GLOBAL const In* x, int64_t row_stride, int64_t k_stride, int64_t rows, int64_t depth,
                       bool along_k, int tid, BCU_THREAD C* values) {
    BCU_UNROLL for (int load = 0; load < kLoads; ++load) {
      int i = row_of(load, tid, along_k), k = depth_of(load, tid, along_k);
      values[load] = i < rows && k < depth ? F::load(x[i * row_stride + k * k_stride]) : C(0);
    }
  }
  BCU_DEVICE void write(BCU_THREAD const C* values, bool along_k, int tid, BCU_SHARED C* slice) {
    BCU_UNROLL for (int load = 0; load < kLoads; ++load)
        slice[depth_of(load, tid, along_k) * kPitch + row_of(load, tid, along_k)] = values[load];
  }

  // Row or column `i` of a thread's elements: in groups of 4, which lie together.
  BCU_DEVICE int spread(int i, int lane) { return (i / 4) * 64 + lane * 4 + i % 4; }

  BCU_DEVICE void multiply(BCU_SHARED const C* a, BCU_SHARED const C* b, int ty, int tx, BCU_THREAD C* sum) {
    BCU_UNROLL for (int k = 0; k < kDepth; ++k) {
      C x[kSide], y[kSide];
      BCU_UNROLL for (int i = 0; i < kSide; i += 4) {
        Quad<C> qa = *(BCU_SHARED const Quad<C>*)(a + k * kPitch + spread(i, ty));
        Quad<C> qb = *(BCU_SHARED const Quad<C>*)(b + k * kPitch + spread(i, tx));
        BCU_UNROLL for (int j = 0; j < 4; ++j) x[i + j] = qa.v[j], y[i + j] = qb.v[j];
      }
      BCU_UNROLL for (int i = 0; i < kSide; ++i) BCU_UNROLL for (int j = 0; j < kSide; ++j) sum[i * kSide + j] +=
          x[i] * y[j];
    }
  }

  BCU_DEVICE void start_part(BCU_CONSTANT Params& p, BCU_THREAD Source& from) {
    from.k = 0;
    from.a_offset = Offsets::of(from.part, p.part_rank, p.part_shape, p.as.part);
    from.b_offset = Offsets::of(from.part, p.part_rank, p.part_shape, p.bs.part);
  }

  // The tile of a block: eight row tiles at a time, so that blocks side by side share columns of B and rows of A.
  BCU_DEVICE void tile_of(BCU_CONSTANT Params& p, int64_t t, BCU_THREAD int64_t& row, BCU_THREAD int64_t& column) {
    int64_t per_group = 8 * p.column_tiles, group = t / per_group, first = group * 8;
    int64_t rows = p.row_tiles - first < 8 ? p.row_tiles - first : 8, rest = t - group * per_group;
    column = rest / rows;
    row = first + rest - column * rows;
  }

  BCU_DEVICE Source start(BCU_THREAD const simt::Context& ctx, BCU_CONSTANT Params& p) {
    Source from;
    int64_t tiles = p.row_tiles * p.column_tiles, tile_row, tile_column;
    from.batch = int64_t(ctx.bid_x()) / tiles;
    tile_of(p, int64_t(ctx.bid_x()) - from.batch * tiles, tile_row, tile_column);
    from.i0 = tile_row * kTile, from.j0 = tile_column * kTile;
    from.a = (BCU_GLOBAL const In*)p.a + Offsets::of(from.batch, p.batch_rank, p.batch_shape, p.as.batch);
    from.b = (BCU_GLOBAL const In*)p.b + Offsets::of(from.batch, p.batch_rank, p.batch_shape, p.bs.batch);
    from.a += from.i0 * p.as.row, from.b += from.j0 * p.bs.column;
    from.part = 0;
    start_part(p, from);
    return from;
  }

  // Reads a thread's share of the next slice; whether that ends a block of products.
  BCU_DEVICE bool fetch(BCU_CONSTANT Params& p, BCU_THREAD Source& from, int tid, BCU_THREAD C* a, BCU_THREAD C* b) {
    int64_t depth = p.k - from.k;
    read(from.a + from.a_offset + from.k * p.as.column, p.as.row, p.as.column, p.m - from.i0, depth, p.a_along_k != 0,
         tid, a);
    read(from.b + from.b_offset + from.k * p.bs.row, p.bs.column, p.bs.row, p.n - from.j0, depth, p.b_along_k != 0, tid,
         b);
    from.k += kDepth;
    bool whole = from.k % kBlock == 0 || from.k >= p.k;
    if (from.k >= p.k && from.part + 1 < p.parts) {
      ++from.part;
      start_part(p, from);
    }
    return whole;
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    BCU_SHARED C* slices = (BCU_SHARED C*)shared;
    int tid = int(ctx.tid()), tx = tid % 16, ty = tid / 16;
    Source from = start(ctx, p);
    C sum[kEach], total[kEach], next_a[kLoads], next_b[kLoads];
    BCU_UNROLL for (int x = 0; x < kEach; ++x) sum[x] = total[x] = C(0);
    int64_t steps = p.parts * ((p.k + kDepth - 1) / kDepth);
    bool whole = false;  // the slice that was read last ends a block of products
    for (int64_t step = 0; step <= steps; ++step) {
      bool ends = whole;
      if (step < steps) whole = fetch(p, from, tid, next_a, next_b);
      if (step > 0) {
        BCU_SHARED const C* now = slices + (step - 1) % 2 * 2 * kSlice;
        multiply(now, now + kSlice, ty, tx, sum);
        if (ends) {
          BCU_UNROLL for (int x = 0; x < kEach; ++x) total[x] += sum[x], sum[x] = C(0);
        }
      }
      if (step < steps) {
        BCU_SHARED C* next = slices + step % 2 * 2 * kSlice;
        write(next_a, p.a_along_k != 0, tid, next);
        write(next_b, p.b_along_k != 0, tid, next + kSlice);
      }
      simt::barrier(ctx);
    }
    // The rows move up in turn, so that what becomes of a sum is compiled for one row of them.
    Ending<T> ending = Ending<T>::start(p, from.batch);
    BCU_NO_UNROLL for (int i = 0; i < kSide; ++i) {
      BCU_UNROLL for (int j = 0; j < kSide; ++j)
          Ending<T>::put(p, ending, from.i0 + spread(i, ty), from.j0 + spread(j, tx), total[j]);
      BCU_UNROLL for (int x = 0; x < kEach - kSide; ++x) total[x] = total[x + kSide];
    }
  }
};

}  // namespace baracuda::matmul
