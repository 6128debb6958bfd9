// Norms over trailing dimensions on GPUs, backward:
//   dx = rstd (g - mean(g) - xhat mean(g xhat)) with g = dy weight and xhat = (x - mean) rstd; rms norms have no mean
//   terms. dweight = sum over rows of dy xhat, dbias of dy: per strip of rows, then over the strips, in order.
#pragma once
#include "simt/fold.h"
#include "simt/rows.h"

namespace baracuda::norm {

enum : int { kGradY, kGradSum, kSavedX, kScale, kSavedMean, kSavedRstd, kGradX, kBackwardTensors };

template <class C>
struct BackwardParams {
  simt::RowSpace<kBackwardTensors> s;
  BCU_GLOBAL C* dweight;  // [strip][position]; null: not wanted
  BCU_GLOBAL C* dbias;
  int64_t per_length;     // bits of 1 / length
  int64_t weight_offset;  // bits of what is added to weights
};

template <class C>
struct RowTerms {
  C mean, rstd, g_mean, slope;
};

template <class Rows, bool kCenter>
struct BackwardRow {
  using C = typename Rows::C;
  using Params = BackwardParams<C>;
  enum : int { kPack = Rows::kPack };

  BCU_DEVICE RowTerms<C> start(BCU_CONSTANT Params& p, int64_t row) {
    RowTerms<C> t;
    t.mean = kCenter ? simt::row_value<C>(p.s, kSavedMean, row) : C(0);
    t.rstd = simt::row_value<C>(p.s, kSavedRstd, row);
    t.g_mean = t.slope = C(0);
    return t;
  }
  // Makes dy into g, and gives the pack's share of sum(g (x - mean)) and of sum(g).
  BCU_DEVICE void gather(BCU_CONSTANT Params& p, BCU_THREAD const RowTerms<C>& t, int64_t i, BCU_THREAD C* g,
                         BCU_THREAD const C* x, BCU_THREAD C& g_x, BCU_THREAD C& g_sum) {
    C w[kPack];
    if (p.s.data[kScale]) {
      Rows::load(p.s, kScale, 0, i, C(0), w);
      C offset = simt::from_bits<C>(p.weight_offset);
      BCU_UNROLL for (int j = 0; j < kPack; ++j) g[j] *= w[j] + offset;
    }
    BCU_UNROLL for (int j = 0; j < kPack; ++j) w[j] = g[j] * (x[j] - t.mean);
    g_x = simt::pack_sum<kPack>(w);
    g_sum = kCenter ? simt::pack_sum<kPack>(g) : C(0);
  }
  BCU_DEVICE void finish(BCU_CONSTANT Params& p, BCU_THREAD RowTerms<C>& t, C g_x, C g_sum) {
    C share = simt::from_bits<C>(p.per_length);
    t.g_mean = g_sum * share;
    t.slope = g_x * share * t.rstd * t.rstd * t.rstd;
  }
  BCU_DEVICE void put(BCU_CONSTANT Params& p, BCU_THREAD const RowTerms<C>& t, int64_t dx, int64_t dsum, int64_t i,
                      BCU_THREAD C* dy, BCU_THREAD const C* x) {
    C w[kPack];
    if (p.s.data[kScale]) {
      Rows::load(p.s, kScale, 0, i, C(0), w);
      C offset = simt::from_bits<C>(p.weight_offset);
      BCU_UNROLL for (int j = 0; j < kPack; ++j) dy[j] *= w[j] + offset;
    }
    BCU_UNROLL for (int j = 0; j < kPack; ++j) dy[j] = (dy[j] - t.g_mean) * t.rstd - (x[j] - t.mean) * t.slope;
    if (p.s.data[kGradSum]) {
      Rows::load(p.s, kGradSum, dsum, i, C(0), w);
      BCU_UNROLL for (int j = 0; j < kPack; ++j) dy[j] += w[j];
    }
    Rows::store(p.s, kGradX, dx, i, dy);
  }
};

// A team takes every so many rows, keeps them in registers, and adds up its strip's gradients of weight and bias there.
// Rows are of whole packs.
template <class Rows, bool kCenter>
struct BackwardCached {
  using C = typename Rows::C;
  using Params = BackwardParams<C>;
  using Row = BackwardRow<Rows, kCenter>;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 64, kValues = 16, kPack = Rows::kPack, kPacks = kValues / kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    C dweight[kPacks][kPack], dbias[kPacks][kPack];
    BCU_UNROLL for (int q = 0; q < kPacks; ++q) {
      BCU_UNROLL for (int j = 0; j < kPack; ++j) dweight[q][j] = dbias[q][j] = C(0);
    }
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index;
      uint32_t length = row < p.s.rows ? uint32_t(p.s.length) : 0u;
      int64_t live = length ? row : 0, from_dy = simt::row_offset(p.s, kGradY, live);
      int64_t from_x = simt::row_offset(p.s, kSavedX, live);
      RowTerms<C> t = Row::start(p, live);
      simt::Pack<typename Rows::T> kept_dy[kPacks], kept_x[kPacks];
      C dy[kPack], x[kPack], g_x = C(0), g_sum = C(0);
      BCU_UNROLL for (int q = 0; q < kPacks; ++q) {
        uint32_t i = (uint32_t(q) * team.size + team.rank) * kPack;
        if (i < length) {
          kept_dy[q] = Rows::raw(p.s, kGradY, from_dy, i);
          kept_x[q] = Rows::raw(p.s, kSavedX, from_x, i);
        }
      }
      BCU_UNROLL for (int q = 0; q < kPacks; ++q) {
        uint32_t i = (uint32_t(q) * team.size + team.rank) * kPack;
        if (i < length) {
          Rows::unpack(kept_dy[q], dy);
          Rows::unpack(kept_x[q], x);
          BCU_UNROLL for (int j = 0; j < kPack; ++j) {
            dweight[q][j] += dy[j] * ((x[j] - t.mean) * t.rstd);
            if (kCenter) dbias[q][j] += dy[j];
          }
          C part_x, part;
          Row::gather(p, t, i, dy, x, part_x, part);
          g_x += part_x, g_sum += part;
        }
      }
      g_x = simt::team_reduce<simt::Add>(ctx, team, g_x, C(0), shared);
      if (kCenter) g_sum = simt::team_reduce<simt::Add>(ctx, team, g_sum, C(0), shared);
      Row::finish(p, t, g_x, g_sum);
      int64_t dx = simt::row_offset(p.s, kGradX, live);
      int64_t dsum = p.s.data[kGradSum] ? simt::row_offset(p.s, kGradSum, live) : 0;
      BCU_UNROLL for (int q = 0; q < kPacks; ++q) {
        uint32_t i = (uint32_t(q) * team.size + team.rank) * kPack;
        if (i < length) {
          Rows::unpack(kept_dy[q], dy);
          Rows::unpack(kept_x[q], x);
          Row::put(p, t, dx, dsum, i, dy, x);
        }
      }
    }
    int64_t strip = team.first + team.index;
    BCU_UNROLL for (int q = 0; q < kPacks; ++q) {
      int64_t i = int64_t(uint32_t(q) * team.size + team.rank) * kPack;
      if (i >= p.s.length) continue;
      BCU_UNROLL for (int j = 0; j < kPack; ++j) {
        if (p.dweight) p.dweight[strip * p.s.length + i + j] = dweight[q][j];
        if (kCenter && p.dbias) p.dbias[strip * p.s.length + i + j] = dbias[q][j];
      }
    }
  }
};

template <class Rows, bool kCenter>
struct BackwardLooped {
  using C = typename Rows::C;
  using Params = BackwardParams<C>;
  using Row = BackwardRow<Rows, kCenter>;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 512, kPack = Rows::kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    int64_t begin = int64_t(team.rank) * kPack, step = int64_t(team.size) * kPack;
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index, length = row < p.s.rows ? p.s.length : 0, live = length ? row : 0;
      int64_t from_dy = simt::row_offset(p.s, kGradY, live), from_x = simt::row_offset(p.s, kSavedX, live);
      RowTerms<C> t = Row::start(p, live);
      simt::LongSum<C> g_x = simt::empty_sum<C>(), g_sum = simt::empty_sum<C>();
      C dy[kPack], x[kPack];
      for (int64_t i = begin; i < length; i += step) {
        Rows::load(p.s, kGradY, from_dy, i, C(0), dy);
        Rows::load(p.s, kSavedX, from_x, i, C(0), x);
        C part_x, part;
        Row::gather(p, t, i, dy, x, part_x, part);
        simt::accumulate(g_x, part_x);
        if (kCenter) simt::accumulate(g_sum, part);
      }
      C all_x = simt::team_reduce<simt::Add>(ctx, team, simt::value_of(g_x), C(0), shared), all = C(0);
      if (kCenter) all = simt::team_reduce<simt::Add>(ctx, team, simt::value_of(g_sum), C(0), shared);
      Row::finish(p, t, all_x, all);
      int64_t dx = simt::row_offset(p.s, kGradX, live);
      int64_t dsum = p.s.data[kGradSum] ? simt::row_offset(p.s, kGradSum, live) : 0;
      for (int64_t i = begin; i < length; i += step) {
        Rows::load(p.s, kGradY, from_dy, i, C(0), dy);
        Rows::load(p.s, kSavedX, from_x, i, C(0), x);
        Row::put(p, t, dx, dsum, i, dy, x);
      }
    }
  }
};

// The gradients of weight and bias of a strip of rows where they are not kept in registers. Rows of this space are
// positions of the normalised dimensions, and run along the norm's rows.
enum : int { kTermDy, kTermX, kTermMean, kTermRstd, kTermTensors };

template <class C>
struct TermParams {
  simt::RowSpace<kTermTensors> s;
  int64_t per;            // of the norm's rows in a strip (blocks along y)
  BCU_GLOBAL C* dweight;  // [strip][position]; null: not wanted
  BCU_GLOBAL C* dbias;
};

template <class Rows, bool kCenter>
struct WeightTerms {
  using C = typename Rows::C;
  using Params = TermParams<C>;
  using Statistics = simt::StridedRows<C>;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 512, kPack = Rows::kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    int64_t strip = int64_t(ctx.bid_y()), begin = strip * p.per, step = int64_t(team.size) * kPack;
    int64_t end = begin + p.per < p.s.length ? begin + p.per : p.s.length;
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index, last = row < p.s.rows ? end : begin, live = row < p.s.rows ? row : 0;
      int64_t from_dy = simt::row_offset(p.s, kTermDy, live), from_x = simt::row_offset(p.s, kTermX, live);
      simt::LongSum<C> dweight = simt::empty_sum<C>(), dbias = simt::empty_sum<C>();
      for (int64_t i = begin + int64_t(team.rank) * kPack; i < last; i += step) {
        C dy[kPack], x[kPack];
        Rows::load(p.s, kTermDy, from_dy, i, C(0), dy);
        Rows::load(p.s, kTermX, from_x, i, C(0), x);
        BCU_UNROLL for (int j = 0; j < kPack; ++j) {
          if (!Rows::has(p.s, i + j)) continue;
          C mean = kCenter ? Statistics::one(p.s, kTermMean, 0, i + j) : C(0);
          x[j] = dy[j] * ((x[j] - mean) * Statistics::one(p.s, kTermRstd, 0, i + j));
        }
        simt::accumulate(dweight, simt::pack_sum<kPack>(x));
        if (kCenter) simt::accumulate(dbias, simt::pack_sum<kPack>(dy));
      }
      C weight = simt::team_reduce<simt::Add>(ctx, team, simt::value_of(dweight), C(0), shared), bias = C(0);
      if (kCenter) bias = simt::team_reduce<simt::Add>(ctx, team, simt::value_of(dbias), C(0), shared);
      if (team.rank != 0u || row >= p.s.rows) continue;
      if (p.dweight) p.dweight[strip * p.s.rows + row] = weight;
      if (kCenter && p.dbias) p.dbias[strip * p.s.rows + row] = bias;
    }
  }
};

}  // namespace baracuda::norm
