// Softmax of scaled values on GPUs, some of which may be masked: rows are read twice.
#pragma once
#include "simt/online.h"

namespace baracuda::softmax {

struct ScaledParams {
  simt::RowSpace<3> s;  // x, y, and the mask, which may be missing; or dy, y, dx
  simt::Number scale;
};

template <class Rows>
struct ScaledRows {
  using C = typename Rows::C;
  using Params = ScaledParams;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 1024, kPack = Rows::kPack };

  // Scaled values, -inf where they are masked. Returns how many are not.
  BCU_DEVICE int64_t load(BCU_CONSTANT Params& p, C scale, int64_t x, int64_t mask, int64_t i, BCU_THREAD C* v) {
    int64_t kept = 0;
    Rows::load(p.s, 0, x, i, -math::infinity<C>(), v);
    BCU_UNROLL for (int j = 0; j < kPack; ++j) {
      bool keep = Rows::has(p.s, i + j);
      v[j] = keep ? v[j] * scale : -math::infinity<C>();
      if (keep && p.s.data[2])
        keep =
            simt::load_element<int64_t>(p.s.data[2], p.s.element[2], mask + simt::position_offset(p.s, 2, i + j)) != 0;
      v[j] = keep ? v[j] : -math::infinity<C>();
      kept += keep ? 1 : 0;
    }
    return kept;
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    C scale = simt::number<C>(p.scale);
    int64_t begin = int64_t(team.rank) * kPack, step = int64_t(team.size) * kPack;
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index, length = row < p.s.rows ? p.s.length : 0, kept = 0;
      int64_t x = length ? simt::row_offset(p.s, 0, row) : 0, mask = 0;
      if (length && p.s.data[2]) mask = simt::row_offset(p.s, 2, row);
      C v[kPack];
      simt::OnlineSum<C> own = simt::empty_online_sum<C>();
      for (int64_t i = begin; i < length; i += step) {
        kept += load(p, scale, x, mask, i, v);
        simt::accumulate<kPack>(own, v);
      }
      simt::OnlineSum<C> all = simt::team_total(ctx, team, own, shared);
      kept = simt::team_reduce<simt::Add>(ctx, team, kept, int64_t(0), shared);
      C factor = C(1) / all.terms.sum;
      int64_t y = length ? simt::row_offset(p.s, 1, row) : 0;
      for (int64_t i = begin; i < length; i += step) {
        load(p, scale, x, mask, i, v);
        BCU_UNROLL for (int j = 0; j < kPack; ++j) v[j] = kept ? math::exp(v[j] - all.max) * factor : C(0);
        Rows::store(p.s, 1, y, i, v);
      }
    }
  }
};

// dx = scale y (dy - sum(y dy))
template <class Rows>
struct ScaledGradient {  // (dy, y, dx)
  using C = typename Rows::C;
  using Params = ScaledParams;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 512, kPack = Rows::kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    C scale = simt::number<C>(p.scale);
    int64_t begin = int64_t(team.rank) * kPack, step = int64_t(team.size) * kPack;
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index, length = row < p.s.rows ? p.s.length : 0;
      int64_t d = length ? simt::row_offset(p.s, 0, row) : 0, y = length ? simt::row_offset(p.s, 1, row) : 0;
      C dy[kPack], v[kPack];
      simt::LongSum<C> own = simt::empty_sum<C>();
      for (int64_t i = begin; i < length; i += step) {
        Rows::load(p.s, 0, d, i, C(0), dy);
        Rows::load(p.s, 1, y, i, C(0), v);
        BCU_UNROLL for (int j = 0; j < kPack; ++j) dy[j] *= v[j];
        simt::accumulate(own, simt::pack_sum<kPack>(dy));
      }
      C sum = simt::team_reduce<simt::Add>(ctx, team, simt::value_of(own), C(0), shared);
      int64_t dx = length ? simt::row_offset(p.s, 2, row) : 0;
      for (int64_t i = begin; i < length; i += step) {
        Rows::load(p.s, 0, d, i, C(0), dy);
        Rows::load(p.s, 1, y, i, C(0), v);
        BCU_UNROLL for (int j = 0; j < kPack; ++j) v[j] = scale * (v[j] * (dy[j] - sum));
        Rows::store(p.s, 2, dx, i, v);
      }
    }
  }
};

}  // namespace baracuda::softmax
