// Norms of channels over a batch on GPUs. A row is what has statistics of its own: a channel, or that of one image.
// Rows are cut into strips (blocks along y), whose two sums go to [strip][which][row]; one thread for each channel
// folds them, in order, into two numbers a row; then values are written.
#pragma once
#include "simt/rows.h"

namespace baracuda::norm {

enum : int { kBatchX, kBatchDy, kBatchWeight, kBatchBias, kBatchMean, kBatchRstd, kBatchTo, kBatchTensors };

template <class C>
struct BatchParams {
  simt::RowSpace<kBatchTensors> s;
  int64_t per;               // positions of a strip, a multiple of 8
  BCU_GLOBAL C* sums;        // [strip][which][row]
  BCU_GLOBAL const C* rows;  // [which][row]; null: no such terms
};

// Mean and sum of squares about it of each strip.
template <class Rows>
struct BatchMoments {
  using C = typename Rows::C;
  using Params = BatchParams<C>;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 512, kPack = Rows::kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    int64_t strip = int64_t(ctx.bid_y()), begin = strip * p.per, step = int64_t(team.size) * kPack;
    int64_t end = begin + p.per < p.s.length ? begin + p.per : p.s.length;
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index, last = row < p.s.rows ? end : begin;
      int64_t x = row < p.s.rows ? simt::row_offset(p.s, kBatchX, row) : 0;
      C v[kPack];
      simt::LongSum<C> sum = simt::empty_sum<C>(), squares = simt::empty_sum<C>();
      for (int64_t i = begin + int64_t(team.rank) * kPack; i < last; i += step) {
        Rows::load(p.s, kBatchX, x, i, C(0), v);
        simt::accumulate(sum, simt::pack_sum<kPack>(v));
      }
      C mean = simt::team_reduce<simt::Add>(ctx, team, simt::value_of(sum), C(0), shared) / C(end - begin);
      for (int64_t i = begin + int64_t(team.rank) * kPack; i < last; i += step) {
        Rows::load(p.s, kBatchX, x, i, mean, v);
        BCU_UNROLL for (int j = 0; j < kPack; ++j) v[j] = (v[j] - mean) * (v[j] - mean);
        simt::accumulate(squares, simt::pack_sum<kPack>(v));
      }
      C all = simt::team_reduce<simt::Add>(ctx, team, simt::value_of(squares), C(0), shared);
      if (team.rank != 0u || row >= p.s.rows) continue;
      p.sums[2 * strip * p.s.rows + row] = mean;
      p.sums[(2 * strip + 1) * p.s.rows + row] = all;
    }
  }
};

// What a channel has of each image, and of all: where it lies.
enum : int { kOldMean, kOldVar, kNewMean, kNewVar, kSavedBatchMean, kSavedBatchRstd, kChannelTensors };

template <class C>
struct ChannelParams {
  int64_t groups, channels, length, per, strips;
  BCU_GLOBAL const C* sums;
  BCU_GLOBAL C* rows;
  BCU_GLOBAL void* data[kChannelTensors];  // null: the call has no such tensor
  int64_t step[kChannelTensors], group_step[kChannelTensors];
  int32_t element[kChannelTensors];
  int32_t training;
  simt::Number eps, momentum;
};

template <class P>
BCU_DEVICE int64_t strip_count(BCU_CONSTANT P& p, int64_t strip) {
  return strip + 1 < p.strips ? p.per : p.length - strip * p.per;
}

// Mean and rstd of every row, and the running statistics.
template <class Compute>
struct BatchStatistics {
  using C = Compute;
  using Params = ChannelParams<C>;
  enum : int { kThreads = 256, kShared = 0 };

  BCU_DEVICE C old(BCU_CONSTANT Params& p, int k, int64_t c) {
    return simt::load_element<C>(p.data[k], p.element[k], c * p.step[k]);
  }
  BCU_DEVICE void put(BCU_CONSTANT Params& p, int k, int64_t g, int64_t c, C v) {
    if (p.data[k]) simt::store_element(p.data[k], p.element[k], g * p.group_step[k] + c * p.step[k], v);
  }
  BCU_DEVICE C mean_of(BCU_CONSTANT Params& p, int64_t row) {
    simt::LongSum<C> sum = simt::empty_sum<C>();
    int64_t rows = p.groups * p.channels;
    for (int64_t s = 0; s < p.strips; ++s)
      simt::accumulate(sum, p.sums[2 * s * rows + row] * (C(strip_count(p, s)) / C(p.length)));
    return simt::value_of(sum);
  }
  BCU_DEVICE C squares_of(BCU_CONSTANT Params& p, int64_t row, C mean) {
    simt::LongSum<C> sum = simt::empty_sum<C>();
    int64_t rows = p.groups * p.channels;
    for (int64_t s = 0; s < p.strips; ++s) {
      C apart = p.sums[2 * s * rows + row] - mean;
      simt::accumulate(sum, p.sums[(2 * s + 1) * rows + row]);
      simt::accumulate(sum, apart * apart * C(strip_count(p, s)));
    }
    return simt::value_of(sum);
  }
  BCU_DEVICE void keep(BCU_CONSTANT Params& p, int64_t g, int64_t c, C mean, C rstd) {
    int64_t row = g * p.channels + c;
    p.rows[row] = mean, p.rows[p.groups * p.channels + row] = rstd;
    put(p, kSavedBatchMean, g, c, mean);
    put(p, kSavedBatchRstd, g, c, rstd);
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    C eps = simt::number<C>(p.eps), share = simt::number<C>(p.momentum);
    for (int64_t c = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); c < p.channels; c += step) {
      C mean = p.data[kOldMean] ? old(p, kOldMean, c) : C(0), var = p.data[kOldVar] ? old(p, kOldVar, c) : C(0);
      if (!p.training) {
        keep(p, 0, c, mean, C(1) / math::sqrt(var + eps));
        continue;
      }
      C means = C(0), vars = C(0);
      for (int64_t g = 0; g < p.groups; ++g) {
        C own = p.length ? mean_of(p, g * p.channels + c) : math::quiet_nan<C>();
        C squares = p.length ? squares_of(p, g * p.channels + c, own) : own;
        keep(p, g, c, own, C(1) / math::sqrt(squares / C(p.length) + eps));
        means += own, vars += squares / C(p.length - 1);
      }
      bool some = p.length > 0 && p.groups > 0;
      put(p, kNewMean, 0, c, some ? (C(1) - share) * mean + share * (means / C(p.groups)) : mean);
      put(p, kNewVar, 0, c, some ? (C(1) - share) * var + share * (vars / C(p.groups)) : var);
    }
  }
};

// y = (x - mean) rstd weight + bias.
template <class Rows>
struct BatchScale {
  using C = typename Rows::C;
  using Params = BatchParams<C>;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 0, kPack = Rows::kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    int64_t begin = int64_t(ctx.bid_y()) * p.per, step = int64_t(team.size) * kPack;
    int64_t end = begin + p.per < p.s.length ? begin + p.per : p.s.length;
    for (int64_t row = team.first + team.index; row < p.s.rows; row += team.step) {
      int64_t x = simt::row_offset(p.s, kBatchX, row), y = simt::row_offset(p.s, kBatchTo, row);
      C mean = p.rows[row], rstd = p.rows[p.s.rows + row];
      C weight = p.s.data[kBatchWeight] ? simt::row_value<C>(p.s, kBatchWeight, row) : C(1);
      C bias = p.s.data[kBatchBias] ? simt::row_value<C>(p.s, kBatchBias, row) : C(0);
      for (int64_t i = begin + int64_t(team.rank) * kPack; i < end; i += step) {
        C v[kPack];
        Rows::load(p.s, kBatchX, x, i, C(0), v);
        BCU_UNROLL for (int j = 0; j < kPack; ++j) v[j] = (v[j] - mean) * rstd * weight + bias;
        Rows::store(p.s, kBatchTo, y, i, v);
      }
    }
  }
};

// Sums of dy and of dy xhat of each strip.
template <class Rows>
struct BatchTerms {
  using C = typename Rows::C;
  using Params = BatchParams<C>;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 512, kPack = Rows::kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    int64_t strip = int64_t(ctx.bid_y()), begin = strip * p.per, step = int64_t(team.size) * kPack;
    int64_t end = begin + p.per < p.s.length ? begin + p.per : p.s.length;
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index, last = row < p.s.rows ? end : begin, live = row < p.s.rows ? row : 0;
      int64_t from_x = simt::row_offset(p.s, kBatchX, live), from_dy = simt::row_offset(p.s, kBatchDy, live);
      C mean = simt::row_value<C>(p.s, kBatchMean, live), rstd = simt::row_value<C>(p.s, kBatchRstd, live);
      simt::LongSum<C> all = simt::empty_sum<C>(), slope = simt::empty_sum<C>();
      for (int64_t i = begin + int64_t(team.rank) * kPack; i < last; i += step) {
        C dy[kPack], x[kPack];
        Rows::load(p.s, kBatchDy, from_dy, i, C(0), dy);
        Rows::load(p.s, kBatchX, from_x, i, mean, x);
        BCU_UNROLL for (int j = 0; j < kPack; ++j) x[j] = dy[j] * ((x[j] - mean) * rstd);
        simt::accumulate(all, simt::pack_sum<kPack>(dy));
        simt::accumulate(slope, simt::pack_sum<kPack>(x));
      }
      C sum = simt::team_reduce<simt::Add>(ctx, team, simt::value_of(all), C(0), shared);
      C sloped = simt::team_reduce<simt::Add>(ctx, team, simt::value_of(slope), C(0), shared);
      if (team.rank != 0u || row >= p.s.rows) continue;
      p.sums[2 * strip * p.s.rows + row] = sum;
      p.sums[(2 * strip + 1) * p.s.rows + row] = sloped;
    }
  }
};

// A row's means of dy and dy xhat, and the gradients of bias (kNewMean) and weight (kNewVar).
template <class Compute>
struct BatchGradients {
  using C = Compute;
  using Params = ChannelParams<C>;
  enum : int { kThreads = 256, kShared = 0 };

  BCU_DEVICE C sum_of(BCU_CONSTANT Params& p, int64_t row, int64_t which) {
    simt::LongSum<C> sum = simt::empty_sum<C>();
    int64_t rows = p.groups * p.channels;
    for (int64_t s = 0; s < p.strips; ++s) simt::accumulate(sum, p.sums[(2 * s + which) * rows + row]);
    return simt::value_of(sum);
  }
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim(), rows = p.groups * p.channels;
    for (int64_t c = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); c < p.channels; c += step) {
      BCU_UNROLL for (int which = 0; which < 2; ++which) {
        simt::LongSum<C> all = simt::empty_sum<C>();
        for (int64_t g = 0; g < p.groups; ++g) {
          C sum = sum_of(p, g * p.channels + c, which);
          p.rows[which * rows + g * p.channels + c] = p.length ? sum / C(p.length) : C(0);
          simt::accumulate(all, sum);
        }
        int k = which ? kNewVar : kNewMean;
        if (p.data[k]) simt::store_element(p.data[k], p.element[k], c * p.step[k], simt::value_of(all));
      }
    }
  }
};

// dx = (dy - mean(dy) - xhat mean(dy xhat)) rstd weight; without `rows` dy rstd weight.
template <class Rows>
struct BatchSpread {
  using C = typename Rows::C;
  using Params = BatchParams<C>;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 0, kPack = Rows::kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    int64_t begin = int64_t(ctx.bid_y()) * p.per, step = int64_t(team.size) * kPack;
    int64_t end = begin + p.per < p.s.length ? begin + p.per : p.s.length;
    for (int64_t row = team.first + team.index; row < p.s.rows; row += team.step) {
      int64_t from_dy = simt::row_offset(p.s, kBatchDy, row), from_x = simt::row_offset(p.s, kBatchX, row);
      int64_t dx = simt::row_offset(p.s, kBatchTo, row);
      C mean = simt::row_value<C>(p.s, kBatchMean, row), rstd = simt::row_value<C>(p.s, kBatchRstd, row);
      C weight = p.s.data[kBatchWeight] ? simt::row_value<C>(p.s, kBatchWeight, row) : C(1);
      C all = p.rows ? p.rows[row] : C(0), slope = p.rows ? p.rows[p.s.rows + row] : C(0);
      for (int64_t i = begin + int64_t(team.rank) * kPack; i < end; i += step) {
        C dy[kPack], x[kPack];
        Rows::load(p.s, kBatchDy, from_dy, i, C(0), dy);
        if (p.rows) {
          Rows::load(p.s, kBatchX, from_x, i, C(0), x);
          BCU_UNROLL for (int j = 0; j < kPack; ++j) dy[j] = dy[j] - all - (x[j] - mean) * rstd * slope;
        }
        BCU_UNROLL for (int j = 0; j < kPack; ++j) dy[j] = dy[j] * rstd * weight;
        Rows::store(p.s, kBatchTo, dx, i, dy);
      }
    }
  }
};

}  // namespace baracuda::norm
