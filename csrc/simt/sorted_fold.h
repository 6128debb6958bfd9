// Folds all that belongs to one id in the order of positions: entries sorted by id, each with so many columns. A thread
// folds one column of an id's first kRun entries; of later ones other threads have folded runs before, so that none
// goes through a long list alone. No atomics: one result. A job says what is folded:
//
//   struct Job {
//     enum : int { kAhead = 8 };                           // terms read before the first of them is added
//     struct Params { SortedParams sorted; ... };
//     using Column = ...; Column column(p, int64_t at)     // what is worked out once for a column
//     using Term = ...; Term term(p, entry, column)        // what an entry adds
//     using State = ...; State start(p, term); void add(p, state, term); void merge(p, state, const State& run)
//     bool own(p, id, column, State&)                      // whether the target's own value is the first term
//     void store(p, entry, column, state)                  // `entry` is the first of the id
//   };
#pragma once
#include "simt/sort.h"

namespace baracuda::simt {

struct SortedParams {
  BCU_GLOBAL const Entry* entries;
  BCU_GLOBAL void* runs;        // states: [entry / kRun][column]
  int64_t count, ids, columns;  // ids that are not below `ids` are left out
  Divider by_columns;
  int32_t narrow;  // count * columns is below 2^31
  int32_t later;   // which of the two launches it is
};

BCU_DEVICE int64_t sorted_row(BCU_CONSTANT SortedParams& s, int64_t work) {
  return s.narrow ? int64_t(quotient(s.by_columns, uint32_t(work))) : work / s.columns;
}
BCU_DEVICE bool has_id(BCU_CONSTANT SortedParams& s, int64_t entry, int64_t id) {
  return entry < s.count && s.entries[entry].id == id;
}
// The first entry from `low` to `high` whose id is `id` or above it; `high` where there is none.
BCU_DEVICE int64_t first_entry(BCU_CONSTANT SortedParams& s, int64_t id, int64_t low, int64_t high) {
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if (s.entries[middle].id < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// A fold of one run of entries of an id.
template <class Job>
struct SortedRun {
  using Params = typename Job::Params;
  using State = typename Job::State;
  using Column = typename Job::Column;
  using Term = typename Job::Term;
  enum : int { kAhead = Job::kAhead, kRun = 512 };

  BCU_DEVICE BCU_GLOBAL State* place(BCU_CONSTANT SortedParams& s, int64_t entry, int64_t column) {
    return (BCU_GLOBAL State*)s.runs + entry / kRun * s.columns + column;
  }
  // Adds the run that begins at `entry`. Several terms are read before the first is added, so that their reads overlap.
  // `any`: the state has a term already.
  BCU_DEVICE void add(BCU_CONSTANT Params& p, int64_t entry, int64_t id, BCU_THREAD const Column& column, bool any,
                      BCU_THREAD State& state) {
    bool more = true;
    for (int done = 0; more && done < kRun; done += kAhead) {
      Term x[kAhead] = {};
      int n = 0;
      BCU_UNROLL for (int i = 0; i < kAhead; ++i) {
        more = more && has_id(p.sorted, entry + done + i, id);
        if (more) x[i] = Job::term(p, entry + done + i, column);
        n += more ? 1 : 0;
      }
      BCU_UNROLL for (int i = 0; i < kAhead; ++i) {
        if (i < n && !any) state = Job::start(p, x[i]);
        if (i < n && any) Job::add(p, state, x[i]);
        any = true;
      }
    }
  }
};

// Two launches of one body, which compiles a job once: with `later` the runs that are not their id's first, a thread
// for each kRun entries and column, as two of them never begin in the same kRun entries; then, a thread per entry and
// column, the first run of every id and the results of its later ones.
template <class Job>
struct FoldSorted {
  using Params = typename Job::Params;
  using Run = SortedRun<Job>;
  enum : int { kThreads = 128, kShared = 0, kBlocks = 1, kRun = Run::kRun };

  // The entry that work begins at, for a slot of kRun entries or for an entry; -1: there is none to do.
  BCU_DEVICE int64_t entry_of(BCU_CONSTANT SortedParams& s, int64_t row) {
    if (!s.later) {
      int64_t id = s.entries[row].id;
      return id >= s.ids || (row > 0 && s.entries[row - 1].id == id) ? -1 : row;
    }
    int64_t begin = row * kRun, id = s.entries[begin].id;
    if (id >= s.ids) return -1;
    int64_t first = first_entry(s, id, 0, begin), runs = (begin - first + kRun - 1) / kRun, entry = first + runs * kRun;
    return runs > 0 && has_id(s, entry, id) ? entry : -1;
  }

  BCU_DEVICE void run(BCU_THREAD const Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t rows = p.sorted.later ? (p.sorted.count + kRun - 1) / kRun : p.sorted.count;
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim(), work = rows * p.sorted.columns;
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < work; i += step) {
      int64_t row = sorted_row(p.sorted, i), at = i - row * p.sorted.columns, entry = entry_of(p.sorted, row);
      if (entry < 0) continue;
      int64_t id = p.sorted.entries[entry].id;
      typename Job::Column column = Job::column(p, at);
      typename Job::State state = {};
      bool own = !p.sorted.later && Job::own(p, id, column, state);
      Run::add(p, entry, id, column, own, state);
      if (p.sorted.later) {
        *Run::place(p.sorted, entry, at) = state;
        continue;
      }
      for (int64_t next = entry + kRun; has_id(p.sorted, next, id); next += kRun) {
        typename Job::State other = *Run::place(p.sorted, next, at);
        Job::merge(p, state, other);
      }
      Job::store(p, entry, column, state);
    }
  }
};

}  // namespace baracuda::simt
