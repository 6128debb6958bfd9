// Softmax and log_softmax on GPUs: rows that fit the registers of a team are read once; longer ones twice, the first
// time with a running maximum.
#pragma once
#include "baracuda/math/log.h"
#include "ops/softmax/simt_scaled.h"
#include "simt/online.h"

namespace baracuda::softmax {

template <int kTensors>
struct RowParams {
  simt::RowSpace<kTensors> s;
};

// From the row's maximum and sum(exp(x - max)): softmax is exp(x - max) / sum, log_softmax x - max - log(sum).
template <bool kLog, class C>
BCU_DEVICE C scale_of(C sum) {
  return kLog ? math::log(sum) : C(1) / sum;
}

template <class Rows, bool kLog>
struct ForwardCached {  // (x, y)
  using C = typename Rows::C;
  using Params = RowParams<2>;
  // kValues: elements that a thread keeps.
  enum : int { kThreads = 512, kBlocks = 1, kShared = 64, kValues = 16, kPack = Rows::kPack, kPacks = kValues / kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index;
      uint32_t length = row < p.s.rows ? uint32_t(p.s.length) : 0u;
      int64_t x = length ? simt::row_offset(p.s, 0, row) : 0, y = length ? simt::row_offset(p.s, 1, row) : 0;
      C v[kPacks][kPack], e[kPack];
      C top = -math::infinity<C>(), sum = C(0);
      BCU_UNROLL for (int q = 0; q < kPacks; ++q) {
        uint32_t i = (uint32_t(q) * team.size + team.rank) * kPack;
        if (i < length) {
          Rows::load(p.s, 0, x, i, -math::infinity<C>(), v[q]);
        } else {
          BCU_UNROLL for (int j = 0; j < kPack; ++j) v[q][j] = -math::infinity<C>();
        }
        BCU_UNROLL for (int j = 0; j < kPack; ++j) top = v[q][j] > top ? v[q][j] : top;
      }
      top = simt::team_reduce<simt::LargerNumber>(ctx, team, top, -math::infinity<C>(), shared);
      BCU_UNROLL for (int q = 0; q < kPacks; ++q) {
        uint32_t i = (uint32_t(q) * team.size + team.rank) * kPack;
        if (i < length) {
          BCU_UNROLL for (int j = 0; j < kPack; ++j) {
            C z = v[q][j] - top;
            e[j] = math::exp(z);
            v[q][j] = kLog ? z : e[j];
          }
          sum += simt::pack_sum<kPack>(e);
        }
      }
      sum = simt::team_reduce<simt::Add>(ctx, team, sum, C(0), shared);
      C scale = scale_of<kLog>(sum);
      BCU_UNROLL for (int q = 0; q < kPacks; ++q) {
        uint32_t i = (uint32_t(q) * team.size + team.rank) * kPack;
        if (i < length) {
          BCU_UNROLL for (int j = 0; j < kPack; ++j) v[q][j] = kLog ? v[q][j] - scale : v[q][j] * scale;
          Rows::store(p.s, 1, y, i, v[q]);
        }
      }
    }
  }
};

template <class Rows, bool kLog>
struct ForwardLooped {  // (x, y)
  using C = typename Rows::C;
  using Params = RowParams<2>;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 512, kPack = Rows::kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    int64_t begin = int64_t(team.rank) * kPack, step = int64_t(team.size) * kPack;
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index, length = row < p.s.rows ? p.s.length : 0;
      int64_t x = length ? simt::row_offset(p.s, 0, row) : 0;
      C v[kPack];
      simt::OnlineSum<C> own = simt::empty_online_sum<C>();
      for (int64_t i = begin; i < length; i += step) {
        Rows::load(p.s, 0, x, i, -math::infinity<C>(), v);
        simt::accumulate<kPack>(own, v);
      }
      simt::OnlineSum<C> all = simt::team_total(ctx, team, own, shared);
      C scale = scale_of<kLog>(all.terms.sum);
      int64_t y = length ? simt::row_offset(p.s, 1, row) : 0;
      for (int64_t i = begin; i < length; i += step) {
        Rows::load(p.s, 0, x, i, C(0), v);
        BCU_UNROLL for (int j = 0; j < kPack; ++j) {
          C z = v[j] - all.max;
          v[j] = kLog ? z - scale : math::exp(z) * scale;
        }
        Rows::store(p.s, 1, y, i, v);
      }
    }
  }
};

// softmax: dx = y (dy - sum(y dy)); log_softmax: dx = dy - exp(y) sum(dy).
template <int kPack, bool kLog, class C>
BCU_DEVICE C gradient_terms(BCU_THREAD const C* dy, BCU_THREAD const C* y) {
  C t[kPack];
  BCU_UNROLL for (int j = 0; j < kPack; ++j) t[j] = kLog ? dy[j] : dy[j] * y[j];
  return simt::pack_sum<kPack>(t);
}
template <bool kLog, class C>
BCU_DEVICE C gradient(C dy, C y, C sum) {
  return kLog ? dy - math::exp(y) * sum : y * (dy - sum);
}

template <class Rows, bool kLog>
struct BackwardCached {  // (dy, y, dx)
  using C = typename Rows::C;
  using Params = RowParams<3>;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 64, kValues = 16, kPack = Rows::kPack, kPacks = kValues / kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index;
      uint32_t length = row < p.s.rows ? uint32_t(p.s.length) : 0u;
      int64_t d = length ? simt::row_offset(p.s, 0, row) : 0, y = length ? simt::row_offset(p.s, 1, row) : 0;
      simt::Pack<typename Rows::T> kept_dy[kPacks], kept_y[kPacks];
      C dy[kPack], v[kPack], sum = C(0);
      BCU_UNROLL for (int q = 0; q < kPacks; ++q) {
        uint32_t i = (uint32_t(q) * team.size + team.rank) * kPack;
        if (i < length) {
          kept_dy[q] = Rows::raw(p.s, 0, d, i);
          kept_y[q] = Rows::raw(p.s, 1, y, i);
          Rows::unpack(kept_dy[q], dy);
          Rows::unpack(kept_y[q], v);
          sum += gradient_terms<kPack, kLog>(dy, v);
        }
      }
      sum = simt::team_reduce<simt::Add>(ctx, team, sum, C(0), shared);
      int64_t dx = length ? simt::row_offset(p.s, 2, row) : 0;
      BCU_UNROLL for (int q = 0; q < kPacks; ++q) {
        uint32_t i = (uint32_t(q) * team.size + team.rank) * kPack;
        if (i < length) {
          Rows::unpack(kept_dy[q], dy);
          Rows::unpack(kept_y[q], v);
          BCU_UNROLL for (int j = 0; j < kPack; ++j) v[j] = gradient<kLog>(dy[j], v[j], sum);
          Rows::store(p.s, 2, dx, i, v);
        }
      }
    }
  }
};

template <class Rows, bool kLog>
struct BackwardLooped {  // (dy, y, dx)
  using C = typename Rows::C;
  using Params = RowParams<3>;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 512, kPack = Rows::kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    int64_t begin = int64_t(team.rank) * kPack, step = int64_t(team.size) * kPack;
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index, length = row < p.s.rows ? p.s.length : 0;
      int64_t d = length ? simt::row_offset(p.s, 0, row) : 0, y = length ? simt::row_offset(p.s, 1, row) : 0;
      C dy[kPack], v[kPack];
      simt::LongSum<C> own = simt::empty_sum<C>();
      for (int64_t i = begin; i < length; i += step) {
        Rows::load(p.s, 0, d, i, C(0), dy);
        if (!kLog) Rows::load(p.s, 1, y, i, C(0), v);
        simt::accumulate(own, gradient_terms<kPack, kLog>(dy, v));
      }
      C sum = simt::team_reduce<simt::Add>(ctx, team, simt::value_of(own), C(0), shared);
      int64_t dx = length ? simt::row_offset(p.s, 2, row) : 0;
      for (int64_t i = begin; i < length; i += step) {
        Rows::load(p.s, 0, d, i, C(0), dy);
        Rows::load(p.s, 1, y, i, C(0), v);
        BCU_UNROLL for (int j = 0; j < kPack; ++j) v[j] = gradient<kLog>(dy[j], v[j], sum);
        Rows::store(p.s, 2, dx, i, v);
      }
    }
  }
};

}  // namespace baracuda::softmax
