// Folds rows into a state of several numbers, such as a mean with a sum of squares, and writes what follows from it.
// Long rows of few are cut into strips (blocks along y) whose states a second launch merges.
//
//   template <class Compute>
//   struct Moments {
//     using C = Compute;
//     struct State { ... };            // at most 48 bytes
//     enum : int { kInputs = 1 };
//     start(), add(state, a, b, p, i), merged(a, b), put(p, row, state)
//   };
#pragma once
#include "simt/rows.h"

namespace baracuda::simt {

// Tensors of the space: two inputs, of which the second may be missing, and the results, one value per row.
enum : int { kFoldResult = 2, kFoldTensors = 5 };

template <class State>
struct StateFoldParams {
  RowSpace<kFoldTensors> s;
  int64_t per;                // positions of a strip
  int64_t strips;             // that are merged
  BCU_GLOBAL State* partial;  // not null: the state of row r and strip k lies at [k * rows + r]
  int32_t kind;               // what the fold is told
  Number number;
};

// The team's state, for its first thread. `memory` holds a State per thread; all threads call this together.
template <class Fold>
BCU_DEVICE typename Fold::State team_state(BCU_THREAD const Context& ctx, BCU_THREAD const Team& t,
                                           BCU_THREAD const typename Fold::State& own, BCU_SHARED float* memory) {
  using State = typename Fold::State;
  BCU_SHARED State* shared = (BCU_SHARED State*)memory;
  State s = own;
  if (t.size == 1u) return s;
  shared[ctx.tid()] = s;
  barrier(ctx);
  uint32_t step = t.columns ? 32u : 1u;
  for (uint32_t w = t.size / 2u; w > 0u; w /= 2u) {
    if (t.rank < w) {
      State other = shared[ctx.tid() + w * step];
      s = Fold::merged(s, other);
      shared[ctx.tid()] = s;
    }
    barrier(ctx);
  }
  return s;
}

template <class Rows, class Fold>
struct FoldStates {
  using C = typename Rows::C;
  using State = typename Fold::State;
  using Params = StateFoldParams<State>;
  enum : int { kThreads = 256, kBlocks = 1, kShared = 256 * int(sizeof(State)) / 4, kPack = Rows::kPack };

  BCU_DEVICE void run(BCU_THREAD const Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    Team team = team_of(ctx, p.s);
    int64_t begin = int64_t(ctx.bid_y()) * p.per, step = int64_t(team.size) * kPack;
    int64_t end = begin + p.per < p.s.length ? begin + p.per : p.s.length;
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index, last = row < p.s.rows ? end : begin;
      int64_t at = row < p.s.rows ? row_offset(p.s, 0, row) : 0;
      int64_t other = Fold::kInputs > 1 && row < p.s.rows ? row_offset(p.s, 1, row) : 0;
      C v[kPack], u[kPack];
      BCU_UNROLL for (int j = 0; j < kPack; ++j) u[j] = C(0);
      State own = Fold::start();
      for (int64_t i = begin + int64_t(team.rank) * kPack; i < last; i += step) {
        Rows::load(p.s, 0, at, i, C(0), v);
        if (Fold::kInputs > 1) Rows::load(p.s, 1, other, i, C(0), u);
        BCU_UNROLL for (int j = 0; j < kPack; ++j) if (i + j < last) Fold::add(own, v[j], u[j], p, i + j);
      }
      own = team_state<Fold>(ctx, team, own, shared);
      if (team.rank == 0u && row < p.s.rows) {
        if (p.partial)
          p.partial[int64_t(ctx.bid_y()) * p.s.rows + row] = own;
        else
          Fold::put(p, row, own);
      }
    }
  }
};

// The states of all strips of a row, in their order.
template <class Fold>
struct MergeStates {
  using State = typename Fold::State;
  using Params = StateFoldParams<State>;
  enum : int { kThreads = 128, kBlocks = 1, kShared = 0 };

  BCU_DEVICE void run(BCU_THREAD const Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t row = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); row < p.s.rows; row += step) {
      State s = p.partial[row];
      for (int64_t k = 1; k < p.strips; ++k) {
        State other = p.partial[k * p.s.rows + row];
        s = Fold::merged(s, other);
      }
      Fold::put(p, row, s);
    }
  }
};

}  // namespace baracuda::simt
