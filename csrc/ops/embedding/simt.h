// The gradient of the embedding lookup on GPUs: occurrences of ids are sorted by id, then each weight row sums its
// gradients in the order of their positions. AddRows is the other way: every gradient is added to its row atomically.
#pragma once
#include "simt/index.h"
#include "simt/pair_sum.h"
#include "simt/sorted_fold.h"

namespace baracuda::embedding {

struct ReadIdsParams {
  simt::Space<1> space;
  simt::IndexParams index;
  BCU_GLOBAL simt::Entry* out;
  int64_t padding;
};

// Ids that have no row, and the padding, become the number of rows, which sorts last.
struct ReadIds {
  using Params = ReadIdsParams;
  enum : int { kThreads = 256, kShared = 0 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) {
      int64_t offset[1], id;
      simt::locate(p.space, i, offset);
      bool good = simt::read_index(p.index, offset[0], i, id);
      simt::Entry e;
      e.id = good && id != p.padding ? id : p.index.limit;
      e.position = i;
      p.out[i] = e;
    }
  }
};

struct SumRowsParams {
  simt::SortedParams sorted;
  simt::Space<1> dy;  // one gradient row per position
  BCU_GLOBAL const void* gradient;
  BCU_GLOBAL void* weight;
  int64_t dy_column, weight_row, weight_column;
  int32_t accumulate;
};

// Sums of gradients, kept in twice the precision of the compute type and rounded once. A first term of -0 stays.
template <class T>
struct SumRows {
  using Params = SumRowsParams;
  using Term = simt::ComputeOf<T>;
  using Sums = simt::PairSum<Term>;
  using State = typename Sums::Sum;
  using Column = int64_t;
  enum : int { kAhead = 8 };

  BCU_DEVICE Column column(BCU_CONSTANT Params&, int64_t at) { return at; }
  BCU_DEVICE Term term(BCU_CONSTANT Params& p, int64_t entry, int64_t column) {
    int64_t offset[1];
    simt::locate(p.dy, p.sorted.entries[entry].position, offset);
    return simt::Stored<T>::load(((BCU_GLOBAL const T*)p.gradient)[offset[0] + column * p.dy_column]);
  }
  BCU_DEVICE State start(BCU_CONSTANT Params&, Term x) { return Sums::start(x); }
  BCU_DEVICE void add(BCU_CONSTANT Params&, BCU_THREAD State& sum, Term x) { Sums::add(sum, x); }
  BCU_DEVICE void merge(BCU_CONSTANT Params&, BCU_THREAD State& sum, BCU_THREAD const State& run) {
    Sums::merge(sum, run);
  }
  BCU_DEVICE BCU_GLOBAL T* place(BCU_CONSTANT Params& p, int64_t id, int64_t column) {
    return (BCU_GLOBAL T*)p.weight + id * p.weight_row + column * p.weight_column;
  }
  BCU_DEVICE bool own(BCU_CONSTANT Params& p, int64_t id, int64_t column, BCU_THREAD State& sum) {
    if (p.accumulate) sum = Sums::start(simt::Stored<T>::load(*place(p, id, column)));
    return p.accumulate != 0;
  }
  BCU_DEVICE void store(BCU_CONSTANT Params& p, int64_t entry, int64_t column, BCU_THREAD const State& sum) {
    *place(p, p.sorted.entries[entry].id, column) = simt::Stored<T>::store(Sums::value(sum));
  }
};

struct AddRowsParams {
  enum : int { kGradient, kIds, kPosition, kTensors };
  simt::Space<3> space;  // of elements of dy; ids and positions have stride 0 along the columns
  simt::IndexParams index;
  BCU_GLOBAL const void* gradient;
  BCU_GLOBAL void* weight;
  int64_t columns, padding, weight_row, dy_column, weight_column;
};

// A thread adds every so many of dy's elements to their rows.
struct AddRows {
  using Params = AddRowsParams;
  enum : int { kThreads = 256, kShared = 0 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) {
      int64_t offset[Params::kTensors], column = simt::locate(p.space, i, offset), id;
      if (!simt::read_index(p.index, offset[Params::kIds], offset[Params::kPosition], id)) continue;
      if (id == p.padding || p.columns == 0) continue;
      float x = ((BCU_GLOBAL const float*)p.gradient)[offset[Params::kGradient] + column * p.dy_column];
      simt::atomic_add((BCU_GLOBAL simt::AtomicF32*)p.weight + id * p.weight_row + column * p.weight_column, x);
    }
  }
};

struct ClearParams {
  simt::Space<1> space;  // of units
  BCU_GLOBAL void* data;
  int64_t column;  // from one unit of a row to the next
};

// Zeroes in units of 2 to 16 bytes.
template <class Unit>
struct Clear {
  using Params = ClearParams;
  enum : int { kThreads = 256, kShared = 0 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    Unit zero = {};
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) {
      int64_t offset[1];
      int64_t unit = simt::locate(p.space, i, offset);
      ((BCU_GLOBAL Unit*)p.data)[offset[0] + unit * p.column] = zero;
    }
  }
};

}  // namespace baracuda::embedding
