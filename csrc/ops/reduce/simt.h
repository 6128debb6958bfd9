// Gradients of the reductions on GPUs; the reductions themselves are the folds of simt/fold.h and simt_folds.h.
#pragma once
#include "ops/reduce/math.h"
#include "ops/reduce/simt_folds.h"
#include "simt/fold.h"
#include "simt/map.h"

namespace baracuda::reduce {

// x, dx, then dy and y of one extremum or two, with one value per row.
struct ShareParams {
  simt::RowSpace<6> s;
  int32_t extrema;
  int32_t magnitude;    // 1: y is the extremum of |x|
  int32_t exponential;  // 1: y is ln of the sum of e^x, whose shares are e^(x - y) where it is finite
};

// Every element that equals an extremum gets an equal share. A NaN extremum equals nothing: the whole slice is 0 / 0.
// An infinite logsumexp is shared in the same way.
template <class Rows>
struct Share {
  using C = typename Rows::C;
  using Params = ShareParams;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 1024, kPack = Rows::kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    int64_t begin = int64_t(team.rank) * kPack, step = int64_t(team.size) * kPack;
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index, length = row < p.s.rows ? p.s.length : 0, equal[2];
      int64_t x = length ? simt::row_offset(p.s, 0, row) : 0;
      C best[2], each[2], v[kPack], other = C(0);
      BCU_UNROLL for (int k = 0; k < 2; ++k) {
        bool is_there = length && k < p.extrema;
        best[k] = is_there ? simt::row_value<C>(p.s, 3 + 2 * k, row) : C(0);
        equal[k] = 0;
      }
      bool smooth = p.exponential && math::fabs(best[0]) != math::infinity<C>();
      for (int64_t i = begin; i < (smooth ? 0 : length); i += step) {
        Rows::load(p.s, 0, x, i, C(0), v);
        BCU_UNROLL for (int j = 0; j < kPack; ++j) {
          C m = p.magnitude ? math::fabs(v[j]) : v[j];
          bool has = Rows::has(p.s, i + j);
          BCU_UNROLL for (int k = 0; k < 2; ++k) equal[k] += has && m == best[k] ? 1 : 0;
        }
      }
      BCU_UNROLL for (int k = 0; k < 2; ++k) {
        each[k] = C(0);
        if (k >= p.extrema) continue;
        equal[k] = simt::team_reduce<simt::Add>(ctx, team, equal[k], int64_t(0), shared);
        if (equal[k]) each[k] = simt::row_value<C>(p.s, 2 + 2 * k, row) / C(equal[k]);
        if (equal[k] == 0 && !p.exponential) other = C(0) / C(equal[k]);
      }
      C dy = smooth && length ? simt::row_value<C>(p.s, 2, row) : C(0);
      int64_t dx = length ? simt::row_offset(p.s, 1, row) : 0;
      for (int64_t i = begin; i < length; i += step) {
        Rows::load(p.s, 0, x, i, C(0), v);
        BCU_UNROLL for (int j = 0; j < kPack; ++j) {
          C m = p.magnitude ? math::fabs(v[j]) : v[j], sum = other;
          BCU_UNROLL for (int k = 0; k < 2; ++k) sum += k < p.extrema && m == best[k] ? each[k] : C(0);
          v[j] = smooth ? LogSumExpGradient::f(dy, v[j], best[0]) : p.magnitude ? sum * sign_of(v[j]) : sum;
        }
        Rows::store(p.s, 1, dx, i, v);
      }
    }
  }
};

struct PlaceParams {
  simt::RowSpace<3> s;  // dvalues, indices, dx
  BCU_GLOBAL simt::Fault* fault;
  int64_t table_row;
  int32_t tensor;  // where indices stand in the signature
};

// dx = dvalues at the chosen positions, 0 elsewhere.
template <class Compute>
struct PlaceGradient {
  using C = Compute;
  using Params = PlaceParams;
  enum : int { kThreads = 256, kBlocks = 1, kShared = 0 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index;
      if (row >= p.s.rows) continue;
      int64_t chosen = simt::row_value<int64_t>(p.s, 1, row), dx = simt::row_offset(p.s, 2, row);
      C dy = simt::row_value<C>(p.s, 0, row);
      if (team.rank == 0u && (chosen < 0 || chosen >= p.s.length))
        simt::raise(p.fault, p.table_row, p.tensor, row, chosen, p.s.length);
      for (int64_t i = int64_t(team.rank); i < p.s.length; i += int64_t(team.size)) {
        int64_t at = dx + simt::position_offset(p.s, 2, i);
        simt::store_element(p.s.data[2], p.s.element[2], at, i == chosen ? dy : C(0));
      }
    }
  }
};

struct DiagonalSize {
  int64_t columns;
};
struct DiagonalGradient {  // dy, broadcast over a matrix
  template <class C>
  BCU_DEVICE void apply(BCU_THREAD const C* in, BCU_THREAD C* out, BCU_CONSTANT DiagonalSize& size, int64_t at) {
    out[0] = at / size.columns == at % size.columns ? in[0] : C(0);
  }
};

}  // namespace baracuda::reduce
