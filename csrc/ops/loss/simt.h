// Cross-entropy with class indices on GPUs. A target out of range is reported once and then taken as ignored; what the
// targets count for is added up on the device.
#pragma once
#include "baracuda/math/log.h"
#include "simt/fold.h"
#include "simt/online.h"

namespace baracuda::loss {

enum : int { kLogits, kTarget, kLoss, kLse, kDloss, kDlogits, kWeight, kTensors };

template <class C>
struct LossParams {
  simt::RowSpace<kTensors> s;  // rows run over the classes
  simt::Number smoothing;
  int64_t ignore_index;
  int32_t each, mean;    // the reduction: none, or a mean; otherwise a sum
  BCU_GLOBAL C* losses;  // of the rows, where they are added up later
  BCU_GLOBAL C* totals;  // what all targets count for, and what classes weigh on average; null: nobody asks
  BCU_GLOBAL simt::Fault* fault;
  int64_t fault_row;
  int32_t fault_tensor;
};

// The row's class; -1: it does not count.
template <class P>
BCU_DEVICE int64_t target_of(BCU_CONSTANT P& p, int64_t row) {
  int64_t t = simt::row_value<int64_t>(p.s, kTarget, row);
  return t == p.ignore_index || t < 0 || t >= p.s.length ? int64_t(-1) : t;
}
template <class P>
BCU_DEVICE void check_target(BCU_CONSTANT P& p, int64_t row) {
  int64_t t = simt::row_value<int64_t>(p.s, kTarget, row);
  if (t != p.ignore_index && (t < 0 || t >= p.s.length))
    simt::raise(p.fault, p.fault_row, p.fault_tensor, row, t, p.s.length);
}

// What a class weighs.
template <class C>
BCU_DEVICE C class_weight(BCU_CONSTANT LossParams<C>& p, int64_t at) {
  if (!p.s.data[kWeight]) return C(1);
  return simt::load_element<C>(p.s.data[kWeight], p.s.element[kWeight], simt::position_offset(p.s, kWeight, at));
}
template <class C>
BCU_DEVICE C mean_weight(BCU_CONSTANT LossParams<C>& p) {
  return p.s.data[kWeight] ? p.totals[1] : C(1);
}
// The part of dloss that is a row's.
template <class C>
BCU_DEVICE C share_of(BCU_CONSTANT LossParams<C>& p, int64_t row) {
  C dloss = simt::row_value<C>(p.s, kDloss, row);
  return p.mean ? dloss / p.totals[0] : dloss;
}

// One block adds up what the targets count for.
template <class C>
struct CountTargets {
  using Params = LossParams<C>;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 64 };

  BCU_DEVICE C block_sum(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared,
                         BCU_THREAD const simt::LongSum<C>& own) {
    return simt::block_reduce<simt::Add>(ctx, simt::value_of(own), C(0), (BCU_SHARED C*)shared);
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    int64_t count = 0;
    simt::LongSum<C> counted = simt::empty_sum<C>(), classes = simt::empty_sum<C>();
    for (int64_t row = ctx.tid(); row < p.s.rows; row += ctx.bdim()) {
      int64_t t = target_of(p, row);
      count += t >= 0 ? 1 : 0;
      if (t >= 0 && p.s.data[kWeight]) simt::accumulate(counted, class_weight(p, t));
    }
    count = simt::block_reduce<simt::Add>(ctx, count, int64_t(0), (BCU_SHARED int64_t*)shared);
    C total = C(count);
    if (p.s.data[kWeight]) {
      // Only what smoothing spreads asks for all classes.
      int64_t asked = simt::number<C>(p.smoothing) != C(0) ? p.s.length : int64_t(0);
      for (int64_t c = ctx.tid(); c < asked; c += ctx.bdim()) simt::accumulate(classes, class_weight(p, c));
      total = block_sum(ctx, shared, counted);
      C all = block_sum(ctx, shared, classes);
      if (ctx.tid() == 0u) p.totals[1] = all / C(p.s.length);
    }
    if (ctx.tid() == 0u) p.totals[0] = total;
  }
};

// What a row's gradient is made of: exp(x - shift) * scale - spread * weight, and less at the target.
template <class C>
struct RowGradient {
  C shift, scale, spread, at_target;
};
// `share`: of the row's loss in the whole.
template <class C>
BCU_DEVICE RowGradient<C> row_gradient(BCU_CONSTANT LossParams<C>& p, int64_t target, C shift, C share, C over_sum) {
  C smooth = simt::number<C>(p.smoothing);
  RowGradient<C> g;
  g.shift = shift;
  g.at_target = share * ((C(1) - smooth) * (target >= 0 ? class_weight(p, target) : C(0)));
  g.scale = g.at_target * over_sum, g.spread = C(0);
  if (smooth != C(0)) {
    g.scale = (g.at_target + share * smooth * mean_weight(p)) * over_sum;
    g.spread = share * smooth / C(p.s.length);
  }
  return g;
}
// Rows that do not count have a gradient of zero.
template <class Rows>
BCU_DEVICE void put_gradient(BCU_CONSTANT LossParams<typename Rows::C>& p, BCU_THREAD const simt::Team& team,
                             int64_t length, int64_t x, int64_t to, int64_t target,
                             BCU_THREAD const RowGradient<typename Rows::C>& g) {
  using C = typename Rows::C;
  C v[Rows::kPack], spread[Rows::kPack];
  bool weighted = g.spread != C(0) && p.s.data[kWeight];
  BCU_UNROLL for (int j = 0; j < Rows::kPack; ++j) spread[j] = g.spread;
  for (int64_t i = int64_t(team.rank) * Rows::kPack; i < length; i += int64_t(team.size) * Rows::kPack) {
    if (target >= 0) Rows::load(p.s, kLogits, x, i, C(0), v);
    if (weighted) {
      Rows::load(p.s, kWeight, 0, i, C(0), spread);
      BCU_UNROLL for (int j = 0; j < Rows::kPack; ++j) spread[j] *= g.spread;
    }
    BCU_UNROLL for (int j = 0; j < Rows::kPack; ++j) {
      C d = target >= 0 ? math::exp(v[j] - g.shift) * g.scale - spread[j] : C(0);
      v[j] = i + j == target ? d - g.at_target : d;
    }
    Rows::store(p.s, kDlogits, to, i, v);
  }
}

// kGradient: the fused op, whose gradient is that of dloss = 1.
template <class Rows, bool kGradient>
struct Forward {
  using C = typename Rows::C;
  using Params = LossParams<C>;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 512, kPack = Rows::kPack };

  // mean(weight * (max - x)), for every thread of the team.
  BCU_DEVICE C mean_below(BCU_THREAD const simt::Context& ctx, BCU_THREAD const simt::Team& team,
                          BCU_SHARED float* shared, BCU_CONSTANT Params& p, int64_t length, int64_t x, C max) {
    simt::LongSum<C> below = simt::empty_sum<C>();
    C v[kPack], w[kPack];
    BCU_UNROLL for (int j = 0; j < kPack; ++j) w[j] = C(1);
    for (int64_t i = int64_t(team.rank) * kPack; i < length; i += int64_t(team.size) * kPack) {
      Rows::load(p.s, kLogits, x, i, max, v);
      if (p.s.data[kWeight]) Rows::load(p.s, kWeight, 0, i, C(0), w);
      BCU_UNROLL for (int j = 0; j < kPack; ++j) v[j] = Rows::has(p.s, i + j) ? w[j] * (max - v[j]) : C(0);
      simt::accumulate(below, simt::pack_sum<kPack>(v));
    }
    return simt::team_reduce<simt::Add>(ctx, team, simt::value_of(below), C(0), shared) / C(p.s.length);
  }

  BCU_DEVICE void put_loss(BCU_CONSTANT Params& p, int64_t row, C value) {
    if (p.losses)
      p.losses[row] = value;
    else
      simt::put_row_value(p.s, kLoss, row, value);
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    C smooth = simt::number<C>(p.smoothing);
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index, length = row < p.s.rows ? p.s.length : 0, live = length ? row : 0;
      int64_t x = simt::row_offset(p.s, kLogits, live), target = target_of(p, live);
      C v[kPack], hit = C(0);
      bool owner = target < 0 && team.rank == 0u;  // who writes the row's loss: the thread that reads the target
      simt::OnlineSum<C> own = simt::empty_online_sum<C>();
      for (int64_t i = int64_t(team.rank) * kPack; i < length; i += int64_t(team.size) * kPack) {
        Rows::load(p.s, kLogits, x, i, -math::infinity<C>(), v);
        simt::accumulate<kPack>(own, v);
        if (target < i || target >= i + kPack) continue;
        owner = true;
        BCU_UNROLL for (int j = 0; j < kPack; ++j) hit = i + j == target ? v[j] : hit;
      }
      simt::OnlineSum<C> all = simt::team_total(ctx, team, own, shared);
      // An infinite maximum has no exp(x - max): NaN, as on the CPU, but for a sum of nothing.
      C below = C(0), log_sum = math::log(all.terms.sum) + (p.s.length > 0 ? all.max - all.max : C(0));
      if (smooth != C(0)) below = mean_below(ctx, team, shared, p, length, x, all.max);
      if (row < p.s.rows) {
        if (team.rank == 0u) check_target(p, row);
        if (team.rank == 0u && p.s.data[kLse]) simt::put_row_value(p.s, kLse, row, all.max + log_sum);
        C value = log_sum + (all.max - hit);
        if (target >= 0 && p.s.data[kWeight]) value *= class_weight(p, target);
        if (smooth != C(0)) value = (C(1) - smooth) * value + smooth * (mean_weight(p) * log_sum + below);
        if (owner) put_loss(p, row, target < 0 ? C(0) : value);
      }
      if (!kGradient) continue;
      C share = p.mean ? C(1) / p.totals[0] : C(1);
      RowGradient<C> g = row_gradient(p, target, all.max, share, C(1) / all.terms.sum);
      put_gradient<Rows>(p, team, length, x, simt::row_offset(p.s, kDlogits, live), target, g);
    }
  }
};

template <class Rows>
struct Backward {
  using C = typename Rows::C;
  using Params = LossParams<C>;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 0, kPack = Rows::kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    for (int64_t row = team.first + team.index; row < p.s.rows; row += team.step) {
      int64_t target = target_of(p, row);
      if (team.rank == 0u) check_target(p, row);
      RowGradient<C> g = row_gradient(p, target, simt::row_value<C>(p.s, kLse, row), share_of(p, row), C(1));
      put_gradient<Rows>(p, team, p.s.length, simt::row_offset(p.s, kLogits, row), simt::row_offset(p.s, kDlogits, row),
                         target, g);
    }
  }
};

}  // namespace baracuda::loss
