// The gradient of the embedding lookup on GPUs: occurrences of ids are sorted by id, stable, with a radix sort of three
// kernels a digit; then each weight row sums its gradients in the order of their positions, of many of them in runs of
// kRun. No atomics: one result. AddRows is the other way: every gradient is added to its row atomically.
#pragma once
#include "baracuda/math/math.h"
#include "simt/space.h"

namespace baracuda::embedding {

// One occurrence of an id.
struct Entry {
  int64_t id, position;
};

struct ReadIdsParams {
  simt::Space<1> space;
  BCU_GLOBAL const void* ids;
  BCU_GLOBAL Entry* out;
  int64_t rows, padding;
  BCU_GLOBAL simt::Fault* fault;
  int64_t row;
  int32_t element, tensor;
};

// Ids that have no row, and the padding, become `rows`, which sorts last.
struct ReadIds {
  using Params = ReadIdsParams;
  enum : int { kThreads = 256, kShared = 0 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) {
      int64_t offset[1];
      simt::locate(p.space, i, offset);
      int64_t id = simt::load_element<int64_t>(p.ids, p.element, offset[0]);
      bool good = uint64_t(id) < uint64_t(p.rows);
      if (!good) simt::raise(p.fault, p.row, p.tensor, i, id, p.rows);
      Entry e;
      e.id = good && id != p.padding ? id : p.rows;
      e.position = i;
      p.out[i] = e;
    }
  }
};

// A block sorts a tile of kTile entries by one digit: thread t owns the tile's entries [t * kEach, (t + 1) * kEach).
// kDigits counters of 16 bits per thread, as [digit][thread].
enum : int { kDigitBits = 6, kDigits = 1 << kDigitBits, kSortThreads = 128, kEach = 16, kTile = kSortThreads * kEach };

struct SortParams {
  BCU_GLOBAL const Entry* from;
  BCU_GLOBAL Entry* to;
  BCU_GLOBAL uint32_t* counts;  // [digit][tile]
  int64_t count, tiles;
  int32_t shift;
};

struct Digits {
  BCU_DEVICE int of(int64_t id, int32_t shift) { return int(uint64_t(id) >> uint32_t(shift)) & (kDigits - 1); }

  // Counts the digits of this thread's entries into its column of `counters`.
  BCU_DEVICE void count(BCU_THREAD const simt::Context& ctx, BCU_SHARED uint16_t* counters, BCU_CONSTANT SortParams& p,
                        int64_t first) {
    for (int d = 0; d < kDigits; ++d) counters[d * kSortThreads + int(ctx.tid())] = 0;
    for (int i = 0; i < kEach; ++i) {
      if (first + i >= p.count) break;
      int at = of(p.from[first + i].id, p.shift) * kSortThreads + int(ctx.tid());
      counters[at] = uint16_t(counters[at] + 1);
    }
  }
};

struct CountDigits {
  using Params = SortParams;
  enum : int { kThreads = kSortThreads, kShared = kDigits * kSortThreads / 2 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    BCU_SHARED uint16_t* counters = (BCU_SHARED uint16_t*)shared;
    int64_t tile = ctx.bid_x();
    Digits::count(ctx, counters, p, tile * kTile + int64_t(ctx.tid()) * kEach);
    simt::barrier(ctx);
    int digit = int(ctx.tid());
    if (digit >= kDigits) return;
    uint32_t sum = 0;
    for (int t = 0; t < kSortThreads; ++t) sum += counters[digit * kSortThreads + t];
    p.counts[digit * p.tiles + tile] = sum;
  }
};

// One block: counts become the sums of all counts before them.
struct SumCounts {
  using Params = SortParams;
  enum : int { kThreads = 1024, kShared = 32 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    BCU_SHARED uint32_t* sums = (BCU_SHARED uint32_t*)shared;
    int64_t total = kDigits * p.tiles;
    uint32_t before = 0;
    for (int64_t base = 0; base < total; base += ctx.bdim()) {
      int64_t at = base + ctx.tid();
      uint32_t mine = at < total ? p.counts[at] : 0u, upto = mine;
      for (uint32_t distance = 1; distance < 32u; distance *= 2u) {
        uint32_t other = simt::shuffle_up(ctx, upto, distance);
        upto += ctx.lane() >= distance ? other : 0u;
      }
      if (ctx.lane() == 31u) sums[ctx.warp()] = upto;
      simt::barrier(ctx);
      uint32_t all = 0;
      for (uint32_t w = 0; w < ctx.warps(); ++w) {
        if (w == ctx.warp()) upto += all;
        all += sums[w];
      }
      if (at < total) p.counts[at] = before + upto - mine;
      before += all;
      simt::barrier(ctx);
    }
  }
};

struct MoveEntries {
  using Params = SortParams;
  enum : int { kThreads = kSortThreads, kShared = kDigits * kSortThreads / 2 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    BCU_SHARED uint16_t* counters = (BCU_SHARED uint16_t*)shared;
    int64_t tile = ctx.bid_x(), first = tile * kTile + int64_t(ctx.tid()) * kEach;
    Digits::count(ctx, counters, p, first);
    simt::barrier(ctx);
    int digit = int(ctx.tid());
    if (digit < kDigits) {
      uint32_t sum = 0;
      for (int t = 0; t < kSortThreads; ++t) {
        uint32_t n = counters[digit * kSortThreads + t];
        counters[digit * kSortThreads + t] = uint16_t(sum);
        sum += n;
      }
    }
    simt::barrier(ctx);
    for (int i = 0; i < kEach; ++i) {
      if (first + i >= p.count) break;
      Entry e = p.from[first + i];
      int d = Digits::of(e.id, p.shift), at = d * kSortThreads + int(ctx.tid());
      uint32_t place = counters[at];
      counters[at] = uint16_t(place + 1u);
      p.to[int64_t(p.counts[d * p.tiles + tile]) + place] = e;
    }
  }
};

struct SumRowsParams {
  simt::Space<1> dy;  // one gradient row per position
  BCU_GLOBAL const Entry* sorted;
  BCU_GLOBAL const void* gradient;
  BCU_GLOBAL void* weight;
  BCU_GLOBAL void* runs;  // sums of runs: [entry / kRun][column]
  int64_t count, rows, columns;
  int64_t dy_column, weight_row, weight_column;
  int64_t stripes;  // of kThreads columns
  int32_t accumulate;
};

// Sums of gradients, kept in twice the precision of C and rounded once.
template <class T>
struct RowSums {
  using Params = SumRowsParams;
  using C = simt::ComputeOf<T>;
  using Sum = math::detail::Pair<C>;
  // Entries of a run, counted from the first of the id: none of the ids around matters to a sum.
  enum : int { kThreads = 128, kAhead = 8, kRun = 512 };

  BCU_DEVICE void add(BCU_THREAD Sum& sum, C x) {
    Sum s = math::detail::two_sum(sum.hi, x);
    sum.hi = s.hi;
    C lost = sum.lo + s.lo;
    sum.lo = lost - lost == C(0) ? lost : C(0);  // an infinite sum has lost nothing
  }
  BCU_DEVICE bool has(BCU_CONSTANT Params& p, int64_t entry, int64_t id) {
    return entry < p.count && p.sorted[entry].id == id;
  }
  BCU_DEVICE C load(BCU_CONSTANT Params& p, int64_t entry, int64_t column) {
    int64_t offset[1];
    simt::locate(p.dy, p.sorted[entry].position, offset);
    return simt::Stored<T>::load(((BCU_GLOBAL const T*)p.gradient)[offset[0] + column * p.dy_column]);
  }
  BCU_DEVICE BCU_GLOBAL Sum* run_sum(BCU_CONSTANT Params& p, int64_t entry, int64_t column) {
    return (BCU_GLOBAL Sum*)p.runs + entry / kRun * p.columns + column;
  }

  // Adds the run that begins at `entry`. Several entries are read before the first is added, so that their reads
  // overlap. `any`: the sum has a term already, which -0 must not meet.
  BCU_DEVICE void add_run(BCU_CONSTANT Params& p, int64_t entry, int64_t id, int64_t column, bool any,
                          BCU_THREAD Sum& sum) {
    bool more = true;
    for (int done = 0; more && done < kRun; done += kAhead) {
      C x[kAhead];
      int n = 0;
      BCU_UNROLL for (int i = 0; i < kAhead; ++i) {
        more = more && has(p, entry + done + i, id);
        x[i] = more ? load(p, entry + done + i, column) : C(0);
        n += more ? 1 : 0;
      }
      BCU_UNROLL for (int i = 0; i < kAhead; ++i) {
        if (i < n && !any) sum.hi = x[i];  // -0 stays
        if (i < n && any) add(sum, x[i]);
        any = true;
      }
    }
  }
};

// A block sums one stripe of a run that is not its id's first. Two such runs never begin in the same kRun entries.
template <class T>
struct SumRuns {
  using Params = SumRowsParams;
  using Rows = RowSums<T>;
  enum : int { kThreads = Rows::kThreads, kShared = 0, kRun = Rows::kRun };

  // The first entry of the id, at `entry` or before it.
  BCU_DEVICE int64_t first_of(BCU_CONSTANT Params& p, int64_t entry, int64_t id) {
    int64_t low = 0, high = entry;
    while (low < high) {
      int64_t middle = (low + high) / 2;
      if (p.sorted[middle].id < id)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t slots = (p.count + kRun - 1) / kRun;
    for (int64_t i = ctx.bid_x(); i < slots * p.stripes; i += ctx.gdim_x()) {
      int64_t slot = i / p.stripes, column = (i - slot * p.stripes) * kThreads + ctx.tid(), begin = slot * kRun;
      int64_t id = p.sorted[begin].id;
      if (id >= p.rows || column >= p.columns) continue;
      int64_t first = first_of(p, begin, id), runs = (begin - first + kRun - 1) / kRun;
      int64_t entry = first + runs * kRun;
      if (runs == 0 || !Rows::has(p, entry, id)) continue;
      typename Rows::Sum sum;
      sum.hi = sum.lo = typename Rows::C(0);
      Rows::add_run(p, entry, id, column, false, sum);
      *Rows::run_sum(p, entry, column) = sum;
    }
  }
};

// A block sums one stripe of the row of a sorted entry's id, if the entry is the first with that id: its first run, and
// the sums of the others.
template <class T>
struct SumRows {
  using Params = SumRowsParams;
  using Rows = RowSums<T>;
  using C = typename Rows::C;
  enum : int { kThreads = Rows::kThreads, kShared = 0, kRun = Rows::kRun };

  BCU_DEVICE void row(BCU_CONSTANT Params& p, int64_t entry, int64_t id, int64_t column) {
    BCU_GLOBAL T* out = (BCU_GLOBAL T*)p.weight + id * p.weight_row + column * p.weight_column;
    typename Rows::Sum sum;
    sum.hi = p.accumulate ? simt::Stored<T>::load(*out) : C(0), sum.lo = C(0);
    Rows::add_run(p, entry, id, column, p.accumulate != 0, sum);
    for (int64_t next = entry + kRun; Rows::has(p, next, id); next += kRun) {
      typename Rows::Sum run = *Rows::run_sum(p, next, column);
      Rows::add(sum, run.hi);
      Rows::add(sum, run.lo);
    }
    *out = simt::Stored<T>::store(sum.hi + sum.lo);
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    for (int64_t i = ctx.bid_x(); i < p.count * p.stripes; i += ctx.gdim_x()) {
      int64_t entry = i / p.stripes, column = (i - entry * p.stripes) * kThreads + ctx.tid();
      int64_t id = p.sorted[entry].id;
      if (id >= p.rows || column >= p.columns) continue;
      if (entry > 0 && p.sorted[entry - 1].id == id) continue;
      row(p, entry, id, column);
    }
  }
};

struct AddRowsParams {
  enum : int { kGradient, kIds, kPosition, kTensors };
  simt::Space<3> space;  // of elements of dy; ids and positions have stride 0 along the columns
  BCU_GLOBAL const void* gradient;
  BCU_GLOBAL const void* ids;
  BCU_GLOBAL void* weight;
  int64_t rows, columns, padding, weight_row, dy_column, weight_column;
  BCU_GLOBAL simt::Fault* fault;
  int64_t row;
  int32_t element, tensor;
};

// A thread adds every so many of dy's elements to their rows.
struct AddRows {
  using Params = AddRowsParams;
  enum : int { kThreads = 256, kShared = 0 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < p.space.count; i += step) {
      int64_t offset[Params::kTensors], column = simt::locate(p.space, i, offset);
      int64_t id = simt::load_element<int64_t>(p.ids, p.element, offset[Params::kIds]);
      if (uint64_t(id) >= uint64_t(p.rows)) {
        simt::raise(p.fault, p.row, p.tensor, offset[Params::kPosition], id, p.rows);
        continue;
      }
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
