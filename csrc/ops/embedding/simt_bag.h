// Bags of rows on GPUs. Forward: a thread per bag and column. Backward: the sorted fold of embedding's gradient, with
// what a bag makes of each id; a warp per id for the gradients of scales.
#pragma once
#include "ops/embedding/bag.h"
#include "simt/index.h"
#include "simt/pair_sum.h"
#include "simt/reduce.h"
#include "simt/sorted_fold.h"

namespace baracuda::embedding {

// Which positions of the ids a bag has.
struct BagsParams {
  simt::IndexParams offsets;  // limit: how many ids there are
  int64_t step, given;        // of offsets: elements between two, how many; -1: every bag has `size` ids
  int64_t count, size;        // bags
};
struct BagRange {
  int64_t begin, end;
};

BCU_DEVICE int64_t bag_offset(BCU_CONSTANT BagsParams& p, int64_t i) {
  return i < p.given ? simt::load_element<int64_t>(p.offsets.data, p.offsets.element, i * p.step) : p.offsets.limit;
}
// Empty where offsets make no sense: memory is safe whatever they are.
BCU_DEVICE BagRange bag_range(BCU_CONSTANT BagsParams& p, int64_t bag) {
  BagRange r;
  r.begin = bag * p.size, r.end = r.begin + p.size;
  if (p.given < 0) return r;
  r.begin = bag_offset(p, bag), r.end = bag_offset(p, bag + 1);
  if (r.begin < 0 || r.end > p.offsets.limit) r.end = r.begin;
  return r;
}
// Offsets begin with 0, do not fall, and stay within the ids.
BCU_DEVICE void check_offset(BCU_CONSTANT BagsParams& p, int64_t i) {
  int64_t at = bag_offset(p, i), next = bag_offset(p, i + 1), limit = i == 0 ? 1 : p.offsets.limit + 1;
  if (at >= 0 && at < limit && (next < 0 || next >= at)) return;
  if (at >= 0 && at < limit) limit = next + 1;  // larger than the next one
  simt::raise(p.offsets.fault, p.offsets.row, p.offsets.tensor, i, at, simt::limit_of(simt::kWantPlace, limit));
}
// The bag of a position; -1: none.
BCU_DEVICE int64_t bag_of(BCU_CONSTANT BagsParams& p, int64_t position) {
  if (p.given < 0) return position / p.size;
  int64_t low = 0, high = p.given;
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if (bag_offset(p, middle) <= position)
      low = middle + 1;
    else
      high = middle;
  }
  return low - 1 < p.count ? low - 1 : -1;
}

struct CheckOffsets {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = BagsParams;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.given; i += step) check_offset(p, i);
  }
};

struct BagFoldParams {
  enum : int { kIds, kScales, kTensors };
  BagsParams bags;
  simt::Space<kTensors> positions;
  simt::IndexParams index;
  BCU_GLOBAL const void* weight;
  BCU_GLOBAL const void* scales;  // null: 1
  BCU_GLOBAL void* y;
  BCU_GLOBAL int64_t* chosen;  // null: not a maximum
  int64_t columns, padding;
  int64_t weight_row, weight_column, y_row, y_column, chosen_row, chosen_column;
  int32_t mode;
};

template <class T>
struct BagFold {
  enum : int { kThreads = 128, kShared = 0, kBlocks = 1, kAhead = 4 };
  using Params = BagFoldParams;
  using C = simt::ComputeOf<T>;
  using Sums = simt::PairSum<C>;

  struct Result {
    typename Sums::Sum sum;
    C best;
    int64_t count, place;
  };

  // The id at a position and its scale; -1: it does not count.
  BCU_DEVICE int64_t id_at(BCU_CONSTANT Params& p, int64_t position, BCU_THREAD C& scale) {
    int64_t offset[Params::kTensors], id;
    simt::locate(p.positions, position, offset);
    scale = C(1);
    if (!simt::read_index(p.index, offset[Params::kIds], position, id) || id == p.padding) return -1;
    if (p.scales) scale = simt::Stored<T>::load(((BCU_GLOBAL const T*)p.scales)[offset[Params::kScales]]);
    return id;
  }
  BCU_DEVICE void fold(BCU_CONSTANT Params& p, BCU_THREAD Result& r, int64_t id, C x, C scale) {
    if (p.mode != kBagMax) {
      Sums::add(r.sum, p.scales ? x * scale : x);
    } else if (r.count == 0 || x > r.best) {  // as in torch a NaN stays only where it comes first
      r.best = x, r.place = id;
    }
    ++r.count;
  }
  // Several ids and rows are read before the first is added, so that their reads overlap.
  BCU_DEVICE Result bag(BCU_CONSTANT Params& p, BCU_THREAD const BagRange& range, int64_t column) {
    Result r;
    r.sum = Sums::start(C(0)), r.best = C(0), r.count = 0, r.place = -1;
    for (int64_t at = range.begin; at < range.end; at += kAhead) {
      int64_t id[kAhead];
      C x[kAhead] = {}, scale[kAhead] = {};
      BCU_UNROLL for (int j = 0; j < kAhead; ++j) id[j] = at + j < range.end ? id_at(p, at + j, scale[j]) : -1;
      BCU_UNROLL for (int j = 0; j < kAhead; ++j) {
        if (id[j] >= 0)
          x[j] =
              simt::Stored<T>::load(((BCU_GLOBAL const T*)p.weight)[id[j] * p.weight_row + column * p.weight_column]);
      }
      BCU_UNROLL for (int j = 0; j < kAhead; ++j) {
        if (id[j] >= 0) fold(p, r, id[j], x[j], scale[j]);
      }
    }
    return r;
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim(), work = p.bags.count * p.columns;
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < work; i += step) {
      int64_t at = i / p.columns, column = i - at * p.columns;
      BagRange range = bag_range(p.bags, at);
      Result r = bag(p, range, column);
      C value = p.mode == kBagMax ? r.best : Sums::value(r.sum);
      if (p.mode == kBagMean && r.count > 1) value = value / C(r.count);
      ((BCU_GLOBAL T*)p.y)[at * p.y_row + column * p.y_column] = simt::Stored<T>::store(value);
      if (p.chosen) p.chosen[at * p.chosen_row + column * p.chosen_column] = r.place;
    }
  }
};

struct BagEntriesParams {
  BagsParams bags;
  simt::Space<1> positions;
  simt::IndexParams index;
  BCU_GLOBAL simt::Entry* out;
  BCU_GLOBAL int32_t* bag;   // of a position; -1: it does not count
  BCU_GLOBAL int32_t* kept;  // of a bag: how many ids count
  int64_t padding;
};

// The bag of every id, and what is sorted.
struct BagEntries {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = BagEntriesParams;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.positions.count; i += step) {
      int64_t offset[1], id;
      simt::locate(p.positions, i, offset);
      bool good = simt::read_index(p.index, offset[0], i, id) && id != p.padding;
      int64_t bag = good ? bag_of(p.bags, i) : -1;
      simt::Entry e;
      e.id = bag >= 0 ? id : p.index.limit, e.position = i;
      p.out[i] = e;
      p.bag[i] = int32_t(bag);
    }
  }
};

// A warp counts what a bag keeps.
struct BagCounts {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = BagEntriesParams;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.warps();
    for (int64_t bag = int64_t(ctx.bid_x()) * ctx.warps() + ctx.warp(); bag < p.bags.count; bag += step) {
      BagRange range = bag_range(p.bags, bag);
      uint32_t mine = 0;
      for (int64_t i = range.begin + ctx.lane(); i < range.end; i += 32) mine += p.bag[i] >= 0 ? 1u : 0u;
      mine = simt::warp_reduce<simt::Add>(ctx, mine);
      if (ctx.lane() == 0u) p.kept[bag] = int32_t(mine);
    }
  }
};

struct BagRowsParams {
  enum : int { kIds, kScales, kDscales, kTensors };
  simt::SortedParams sorted;
  simt::Space<kTensors> positions;
  BCU_GLOBAL const void* ids;
  BCU_GLOBAL const int32_t* bag;
  BCU_GLOBAL const int32_t* kept;
  BCU_GLOBAL const void* dy;
  BCU_GLOBAL const void* weight;
  BCU_GLOBAL const void* scales;
  BCU_GLOBAL const int64_t* chosen;
  BCU_GLOBAL void* dweight;
  BCU_GLOBAL void* dscales;
  int64_t count, columns;
  int64_t dy_row, dy_column, weight_row, weight_column, chosen_row, chosen_column, dweight_row, dweight_column;
  int32_t mode, id_element;
};

// The job of simt::fold_sorted: sums of the bags' gradients. They start with 0, as torch's do.
template <class T>
struct BagRows {
  using Params = BagRowsParams;
  using Term = simt::ComputeOf<T>;
  using Sums = simt::PairSum<Term>;
  using State = typename Sums::Sum;
  using Column = int64_t;
  enum : int { kAhead = 8 };

  BCU_DEVICE Column column(BCU_CONSTANT Params&, int64_t at) { return at; }
  BCU_DEVICE Term scale(BCU_CONSTANT Params& p, int64_t position) {
    int64_t offset[Params::kTensors];
    simt::locate(p.positions, position, offset);
    return simt::Stored<T>::load(((BCU_GLOBAL const T*)p.scales)[offset[Params::kScales]]);
  }
  BCU_DEVICE bool is_chosen(BCU_CONSTANT Params& p, int64_t entry, int64_t bag, int64_t column) {
    int64_t id = p.sorted.entries[entry].id;
    // An id counts once in a bag.
    if (entry > 0 && p.sorted.entries[entry - 1].id == id && p.bag[p.sorted.entries[entry - 1].position] == bag)
      return false;
    return p.chosen[bag * p.chosen_row + column * p.chosen_column] == id;
  }
  BCU_DEVICE Term term(BCU_CONSTANT Params& p, int64_t entry, int64_t column) {
    int64_t position = p.sorted.entries[entry].position, bag = p.bag[position];
    if (p.mode == kBagMax && !is_chosen(p, entry, bag, column)) return Term(0);
    Term x = simt::Stored<T>::load(((BCU_GLOBAL const T*)p.dy)[bag * p.dy_row + column * p.dy_column]);
    if (p.scales) return x * scale(p, position);
    return p.mode == kBagMean ? x / Term(p.kept[bag]) : x;
  }
  BCU_DEVICE State start(BCU_CONSTANT Params&, Term x) { return Sums::start(x); }
  BCU_DEVICE void add(BCU_CONSTANT Params&, BCU_THREAD State& sum, Term x) { Sums::add(sum, x); }
  BCU_DEVICE void merge(BCU_CONSTANT Params&, BCU_THREAD State& sum, BCU_THREAD const State& run) {
    Sums::merge(sum, run);
  }
  BCU_DEVICE bool own(BCU_CONSTANT Params&, int64_t, int64_t, BCU_THREAD State& sum) {
    sum = Sums::start(Term(0));
    return true;
  }
  BCU_DEVICE void store(BCU_CONSTANT Params& p, int64_t entry, int64_t column, BCU_THREAD const State& sum) {
    ((BCU_GLOBAL T*)p.dweight)[p.sorted.entries[entry].id * p.dweight_row + column * p.dweight_column] =
        simt::Stored<T>::store(Sums::value(sum));
  }
};

// A warp per id: the product of its row and its bag's gradient.
template <class T>
struct BagScales {
  enum : int { kThreads = 256, kShared = 0 };
  using Params = BagRowsParams;
  using C = simt::ComputeOf<T>;
  using Sums = simt::PairSum<C>;

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.warps();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.warps() + ctx.warp(); i < p.count; i += step) {
      int64_t offset[Params::kTensors], bag = p.bag[i];
      simt::locate(p.positions, i, offset);
      typename Sums::Sum sum = Sums::start(C(0));
      if (bag >= 0) {
        int64_t id = simt::load_element<int64_t>(p.ids, p.id_element, offset[Params::kIds]);
        for (int64_t column = ctx.lane(); column < p.columns; column += 32) {
          C w = simt::Stored<T>::load(((BCU_GLOBAL const T*)p.weight)[id * p.weight_row + column * p.weight_column]);
          C g = simt::Stored<T>::load(((BCU_GLOBAL const T*)p.dy)[bag * p.dy_row + column * p.dy_column]);
          Sums::add(sum, w * g);
        }
      }
      BCU_UNROLL for (uint32_t mask = 16; mask > 0; mask >>= 1) {
        typename Sums::Sum other;
        other.hi = simt::shuffle_xor(ctx, sum.hi, mask), other.lo = simt::shuffle_xor(ctx, sum.lo, mask);
        Sums::merge(sum, other);
      }
      if (ctx.lane() == 0u)
        ((BCU_GLOBAL T*)p.dscales)[offset[Params::kDscales]] = simt::Stored<T>::store(Sums::value(sum));
    }
  }
};

}  // namespace baracuda::embedding
