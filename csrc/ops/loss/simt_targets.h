// Cross-entropy with probabilities as target, and the negative log-likelihood, on GPUs.
#pragma once
#include "ops/loss/simt.h"

namespace baracuda::loss {

// What the classes from position i of a row on count for: smoothed probabilities times weights; past the end nothing.
template <class Rows, class C>
BCU_DEVICE void shares(BCU_CONSTANT LossParams<C>& p, int64_t target, int64_t i, C smooth, BCU_THREAD C* q) {
  C spread = smooth / C(p.s.length), w[Rows::kPack];
  Rows::load(p.s, kTarget, target, i, C(0), q);
  BCU_UNROLL for (int j = 0; j < Rows::kPack; ++j) q[j] =
      Rows::has(p.s, i + j) ? q[j] * (C(1) - smooth) + spread : C(0);
  if (!p.s.data[kWeight]) return;
  Rows::load(p.s, kWeight, 0, i, C(0), w);
  BCU_UNROLL for (int j = 0; j < Rows::kPack; ++j) q[j] *= w[j];
}

template <class Rows>
struct ForwardProbabilities {
  using C = typename Rows::C;
  using Params = LossParams<C>;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 512, kPack = Rows::kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    C smooth = simt::number<C>(p.smoothing), v[kPack], q[kPack];
    int64_t step = int64_t(team.size) * kPack;
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index, length = row < p.s.rows ? p.s.length : 0, live = length ? row : 0;
      int64_t x = simt::row_offset(p.s, kLogits, live), t = simt::row_offset(p.s, kTarget, live);
      simt::OnlineSum<C> own = simt::empty_online_sum<C>();
      for (int64_t i = int64_t(team.rank) * kPack; i < length; i += step) {
        Rows::load(p.s, kLogits, x, i, -math::infinity<C>(), v);
        simt::accumulate<kPack>(own, v);
      }
      simt::OnlineSum<C> all = simt::team_total(ctx, team, own, shared);
      // An infinite maximum has no exp(x - max): NaN, as on the CPU.
      C log_sum = math::log(all.terms.sum) + (p.s.length > 0 ? all.max - all.max : C(0));
      simt::LongSum<C> below = simt::empty_sum<C>(), whole = simt::empty_sum<C>();
      for (int64_t i = int64_t(team.rank) * kPack; i < length; i += step) {
        Rows::load(p.s, kLogits, x, i, all.max, v);
        shares<Rows>(p, t, i, smooth, q);
        simt::accumulate(whole, simt::pack_sum<kPack>(q));
        BCU_UNROLL for (int j = 0; j < kPack; ++j) v[j] = Rows::has(p.s, i + j) ? q[j] * (all.max - v[j]) : C(0);
        simt::accumulate(below, simt::pack_sum<kPack>(v));
      }
      C sum = simt::team_reduce<simt::Add>(ctx, team, simt::value_of(whole), C(0), shared);
      C value = simt::team_reduce<simt::Add>(ctx, team, simt::value_of(below), C(0), shared) + sum * log_sum;
      if (row >= p.s.rows || team.rank != 0u) continue;
      if (p.s.data[kLse]) simt::put_row_value(p.s, kLse, row, all.max + log_sum);
      if (p.losses)
        p.losses[row] = value;
      else
        simt::put_row_value(p.s, kLoss, row, value);
    }
  }
};

template <class Rows>
struct BackwardProbabilities {
  using C = typename Rows::C;
  using Params = LossParams<C>;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 512, kPack = Rows::kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    C smooth = simt::number<C>(p.smoothing), v[kPack], q[kPack];
    int64_t step = int64_t(team.size) * kPack;
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index, length = row < p.s.rows ? p.s.length : 0, live = length ? row : 0;
      int64_t x = simt::row_offset(p.s, kLogits, live), t = simt::row_offset(p.s, kTarget, live);
      simt::LongSum<C> own = simt::empty_sum<C>();
      for (int64_t i = int64_t(team.rank) * kPack; i < length; i += step) {
        shares<Rows>(p, t, i, smooth, q);
        simt::accumulate(own, simt::pack_sum<kPack>(q));
      }
      C whole = simt::team_reduce<simt::Add>(ctx, team, simt::value_of(own), C(0), shared);
      C lse = simt::row_value<C>(p.s, kLse, live), share = simt::row_value<C>(p.s, kDloss, live);
      if (p.mean) share = share / C(p.s.rows);
      int64_t to = simt::row_offset(p.s, kDlogits, live);
      for (int64_t i = int64_t(team.rank) * kPack; i < length; i += step) {
        Rows::load(p.s, kLogits, x, i, C(0), v);
        shares<Rows>(p, t, i, smooth, q);
        BCU_UNROLL for (int j = 0; j < kPack; ++j) v[j] = share * (math::exp(v[j] - lse) * whole - q[j]);
        Rows::store(p.s, kDlogits, to, i, v);
      }
    }
  }
};

// A thread for each row.
template <class C>
struct ForwardLikelihood {
  using Params = LossParams<C>;
  enum : int { kThreads = 256, kShared = 0 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t row = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); row < p.s.rows; row += step) {
      int64_t t = target_of(p, row);
      check_target(p, row);
      C value = C(0);
      if (t >= 0) {
        int64_t at = simt::row_offset(p.s, kLogits, row) + simt::position_offset(p.s, kLogits, t);
        value = -class_weight(p, t) * simt::load_element<C>(p.s.data[kLogits], p.s.element[kLogits], at);
      }
      if (p.losses)
        p.losses[row] = value;
      else
        simt::put_row_value(p.s, kLoss, row, value);
    }
  }
};

template <class Rows>
struct BackwardLikelihood {
  using C = typename Rows::C;
  using Params = LossParams<C>;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 0, kPack = Rows::kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    for (int64_t row = team.first + team.index; row < p.s.rows; row += team.step) {
      int64_t t = target_of(p, row), to = simt::row_offset(p.s, kDlogits, row);
      if (team.rank == 0u) check_target(p, row);
      C value = t >= 0 ? -share_of(p, row) * class_weight(p, t) : C(0), v[kPack];
      for (int64_t i = int64_t(team.rank) * kPack; i < p.s.length; i += int64_t(team.size) * kPack) {
        BCU_UNROLL for (int j = 0; j < kPack; ++j) v[j] = i + j == t ? value : C(0);
        Rows::store(p.s, kDlogits, to, i, v);
      }
    }
  }
};

}  // namespace baracuda::loss
