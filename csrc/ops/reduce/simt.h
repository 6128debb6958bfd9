// Gradients of the reductions on GPUs; the reductions themselves are the folds of simt/fold.h.
#pragma once
#include "simt/fold.h"
#include "simt/map.h"

namespace baracuda::reduce {

struct Spread {  // dy, broadcast, and what it is divided by
  template <class C>
  BCU_FN C f(C dy, C divisor) {
    return dy / divisor;
  }
};

struct ShareParams {
  simt::RowSpace<4> s;
};

// Every element that equals the extremum gets an equal share. A NaN extremum equals nothing: the whole slice is 0 / 0.
template <class Rows>
struct Share {  // (dy, x, y, dx), dy and y with one value per row
  using C = typename Rows::C;
  using Params = ShareParams;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 512, kPack = Rows::kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    int64_t begin = int64_t(team.rank) * kPack, step = int64_t(team.size) * kPack;
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index, length = row < p.s.rows ? p.s.length : 0, equal = 0;
      int64_t x = length ? simt::row_offset(p.s, 1, row) : 0;
      C best = length ? simt::row_value<C>(p.s, 2, row) : C(0), v[kPack];
      for (int64_t i = begin; i < length; i += step) {
        Rows::load(p.s, 1, x, i, C(0), v);
        BCU_UNROLL for (int j = 0; j < kPack; ++j) equal += Rows::has(p.s, i + j) && v[j] == best ? 1 : 0;
      }
      equal = simt::team_reduce<simt::Add>(ctx, team, equal, int64_t(0), shared);
      C other = equal ? C(0) : C(0) / C(equal), each = other;
      int64_t dx = length ? simt::row_offset(p.s, 3, row) : 0;
      if (equal) each = simt::row_value<C>(p.s, 0, row) / C(equal);
      for (int64_t i = begin; i < length; i += step) {
        Rows::load(p.s, 1, x, i, C(0), v);
        BCU_UNROLL for (int j = 0; j < kPack; ++j) v[j] = v[j] == best ? each : other;
        Rows::store(p.s, 3, dx, i, v);
      }
    }
  }
};

}  // namespace baracuda::reduce
