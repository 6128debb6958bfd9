// Tokens drawn from logits on GPUs, a row by a block: places in a row's order are found by halving, two bits of their
// keys at a time, each time adding up all weights below.
#pragma once
#include "ops/sampling/math.h"
#include "simt/prefix.h"
#include "simt/simt.h"

namespace baracuda::sampling {

// The order of `numbers`, and of the columns of `controls`.
enum ControlColumn : int { kTemperature, kTopK, kTopP, kMinP, kTypicalP, kRepetition, kPresence, kFrequency, kColumns };

struct RowParams {
  BCU_GLOBAL const void *logits, *counts, *mask, *controls;  // the last three may be null
  BCU_GLOBAL void* y;
  int64_t rows, tokens, samples;
  int64_t logits_row, logits_step, counts_row, counts_step, mask_row, mask_step, controls_row, controls_step;
  int64_t y_row, y_step;  // strides in elements
  simt::Number numbers[kColumns], seed, offset;
  BCU_GLOBAL simt::Fault* fault;
  int64_t row;  // in the table
  int32_t logits_element, y_element, logits_tensor, controls_tensor;
  int32_t probabilities;
};

BCU_FN bool in_range(float v, int32_t column) {
  if (!(v - v == 0.0f)) return false;
  if (column == kTopK || column == kPresence || column == kFrequency) return true;
  return v >= 0.0f && (column == kTemperature || column == kRepetition || v <= 1.0f);
}
BCU_FN int32_t range_of(int32_t column) {
  if (column == kTopP || column == kMinP || column == kTypicalP) return simt::kUnit;
  return column == kTemperature || column == kRepetition ? simt::kNotNegative : simt::kFinite;
}
BCU_DEVICE float control_of(BCU_CONSTANT RowParams& p, int64_t row, int32_t column) {
  if (!p.controls) return simt::number<float>(p.numbers[column]);
  return ((BCU_GLOBAL const float*)p.controls)[row * p.controls_row + column * p.controls_step];
}
// False where one is out of range, which the device is told.
BCU_DEVICE bool read_controls(BCU_CONSTANT RowParams& p, int64_t row, bool tells, BCU_THREAD Controls& c) {
  bool good = true;
  float v[kColumns];
  for (int32_t k = 0; k < kColumns; ++k) {
    v[k] = control_of(p, row, k);
    if (in_range(v[k], k)) continue;
    good = false;
    if (!tells) continue;
    if (!p.controls)
      simt::raise_value(p.fault, p.row, -1, k, v[k], range_of(k));
    else
      simt::raise_value(p.fault, p.row, p.controls_tensor, row * kColumns + k, v[k], range_of(k));
  }
  c.temperature = v[kTemperature], c.top_p = v[kTopP], c.min_p = v[kMinP], c.typical_p = v[kTypicalP];
  c.repetition = v[kRepetition], c.presence = v[kPresence], c.frequency = v[kFrequency];
  c.top_k = p.controls ? whole_k(v[kTopK]) : simt::number<int64_t>(p.numbers[kTopK]);
  return good;
}

BCU_DEVICE float logit_at(BCU_CONSTANT RowParams& p, int64_t row, int64_t at, BCU_THREAD const Penalty& penalty) {
  float v = simt::load_element<float>(p.logits, p.logits_element, row * p.logits_row + at * p.logits_step);
  if (p.counts)
    v = penalised(v, ((BCU_GLOBAL const int32_t*)p.counts)[row * p.counts_row + at * p.counts_step], penalty);
  if (p.mask && ((BCU_GLOBAL const uint8_t*)p.mask)[row * p.mask_row + at * p.mask_step] == 0)
    v = -math::infinity<float>();
  return v;
}

struct Crossing {
  Cut at;
  uint64_t sum;
};

struct RowOrder {
  enum : int { kThreads = 512, kShared = 2 * kThreads + 64 };

  BCU_DEVICE uint64_t sum_of(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, uint64_t v) {
    return simt::block_reduce<simt::Add>(ctx, v, uint64_t(0), (BCU_SHARED uint64_t*)shared);
  }

  BCU_DEVICE uint64_t weigh(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT RowParams& p,
                            int64_t row, BCU_THREAD const Penalty& penalty, BCU_THREAD const Rule& rule) {
    uint64_t sum = 0;
    for (int64_t i = ctx.tid(); i < p.tokens; i += ctx.bdim())
      sum += entry_of(logit_at(p, row, i, penalty), i, rule).weight;
    return sum_of(ctx, shared, sum);
  }

  // The key of the first place at which weights (or, with `counts`, tokens) add up to `target`, and the sum before it.
  BCU_DEVICE Crossing key_at(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT RowParams& p,
                             int64_t row, BCU_THREAD const Penalty& penalty, BCU_THREAD const Rule& rule, bool counts,
                             uint64_t target) {
    Crossing found;
    found.at.key = 0u, found.at.position = 0, found.sum = 0;
    for (int32_t shift = 30; shift >= 0; shift -= 2) {
      // Sums of keys with the next two bits 0, 1 and 2, those before them left out.
      uint64_t s0 = 0, s1 = 0, s2 = 0;
      for (int64_t i = ctx.tid(); i < p.tokens; i += ctx.bdim()) {
        Entry e = entry_of(logit_at(p, row, i, penalty), i, rule);
        if (e.key < found.at.key) continue;
        uint32_t digit = (e.key - found.at.key) >> shift;
        uint64_t w = counts ? uint64_t(e.kept ? 1 : 0) : e.weight;
        s0 += digit == 0u ? w : uint64_t(0);
        s1 += digit == 1u ? w : uint64_t(0);
        s2 += digit == 2u ? w : uint64_t(0);
      }
      s0 = sum_of(ctx, shared, s0), s1 = sum_of(ctx, shared, s1), s2 = sum_of(ctx, shared, s2);
      uint32_t digit = 0u;
      uint64_t left = target - found.sum, before = 0;
      if (left > s0) digit = 1u, before = s0;
      if (left > s0 + s1) digit = 2u, before = s0 + s1;
      if (left > s0 + s1 + s2) digit = 3u, before = s0 + s1 + s2;
      found.at.key += digit << shift, found.sum += before;
    }
    return found;
  }

  // The position of the m-th kept token with a key, m from 1 on.
  BCU_DEVICE int64_t position_of(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared,
                                 BCU_CONSTANT RowParams& p, int64_t row, BCU_THREAD const Penalty& penalty,
                                 BCU_THREAD const Rule& rule, uint32_t key, uint64_t m) {
    BCU_SHARED uint32_t* counts = (BCU_SHARED uint32_t*)shared;
    BCU_SHARED int64_t* place = (BCU_SHARED int64_t*)(shared + 2 * kThreads);
    int64_t per = (p.tokens + ctx.bdim() - 1) / ctx.bdim(), first = int64_t(ctx.tid()) * per;
    int64_t last = first + per < p.tokens ? first + per : p.tokens;
    uint32_t own = 0u;
    for (int64_t i = first; i < last; ++i) {
      Entry e = entry_of(logit_at(p, row, i, penalty), i, rule);
      own += e.kept && e.key == key ? 1u : 0u;
    }
    counts[ctx.tid()] = own;
    if (ctx.tid() == 0u) *place = 0;
    simt::barrier(ctx);
    uint64_t before = 0;
    for (uint32_t k = 0; k < ctx.tid(); ++k) before += counts[k];
    if (before < m && m <= before + own)
      for (int64_t i = first; i < last; ++i) {
        Entry e = entry_of(logit_at(p, row, i, penalty), i, rule);
        before += e.kept && e.key == key ? 1u : 0u;
        if (before == m) {
          *place = i;
          break;
        }
      }
    simt::barrier(ctx);
    int64_t found = *place;
    simt::barrier(ctx);
    return found;
  }

  // The first place at which the weights add up to `target`, and what the sum is then.
  BCU_DEVICE Crossing find(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT RowParams& p,
                           int64_t row, BCU_THREAD const Penalty& penalty, BCU_THREAD const Rule& rule,
                           uint64_t target) {
    Crossing found = key_at(ctx, shared, p, row, penalty, rule, false, target);
    uint64_t w = weight_at(found.at.key, rule);
    uint64_t m = w > 0u ? (target - found.sum + w - 1u) / w : uint64_t(1);
    found.at.position = position_of(ctx, shared, p, row, penalty, rule, found.at.key, m);
    found.sum += m * w;
    return found;
  }
  BCU_DEVICE Cut find_kth(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT RowParams& p,
                          int64_t row, BCU_THREAD const Penalty& penalty, BCU_THREAD const Rule& rule, int64_t k) {
    Crossing found = key_at(ctx, shared, p, row, penalty, rule, true, uint64_t(k));
    found.at.position = position_of(ctx, shared, p, row, penalty, rule, found.at.key, uint64_t(k) - found.sum);
    return found.at;
  }

  BCU_DEVICE uint32_t mean_distance(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared,
                                    BCU_CONSTANT RowParams& p, int64_t row, BCU_THREAD const Penalty& penalty,
                                    BCU_THREAD const Rule& rule, uint64_t sum) {
    Wide own;
    own.upper = 0, own.lower = 0;
    for (int64_t i = ctx.tid(); i < p.tokens; i += ctx.bdim()) {
      float v = logit_at(p, row, i, penalty);
      uint64_t w = entry_of(v, i, rule).weight;
      if (w != 0u) own = wide_sum(own, wide_product(w, distance(v, rule.top, rule.octaves)));
    }
    // Halves of the lower word, whose sums fit.
    uint64_t low = sum_of(ctx, shared, own.lower & 0xFFFFFFFFu), high = sum_of(ctx, shared, own.lower >> 32);
    Wide total, carried;
    total.upper = sum_of(ctx, shared, own.upper), total.lower = low;
    carried.upper = high >> 32, carried.lower = high << 32;
    return wide_quotient(wide_sum(total, carried), sum);
  }

  // Makes the row's rule; 0 where nothing can be drawn, which the device is told, else the sum of what is kept.
  BCU_DEVICE uint64_t keep(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT RowParams& p,
                           int64_t row, BCU_THREAD Penalty& penalty, BCU_THREAD Rule& rule) {
    Controls c;
    bool good = read_controls(p, row, ctx.tid() == 0u, c);
    penalty = penalty_of(c);
    float top = -math::infinity<float>();
    for (int64_t i = ctx.tid(); i < p.tokens; i += ctx.bdim()) {
      float v = logit_at(p, row, i, penalty);
      if (!is_logit(v)) simt::raise_value(p.fault, p.row, p.logits_tensor, row * p.tokens + i, v, simt::kFinite);
      top = !is_logit(v) || v > top ? v : top;
    }
    top = simt::block_reduce<simt::Larger>(ctx, top, -math::infinity<float>(), shared);
    if (!good || !is_logit(top)) return 0;
    if (top == -math::infinity<float>()) {
      if (ctx.tid() == 0u) simt::raise_value(p.fault, p.row, p.logits_tensor, row * p.tokens, 0.0f, simt::kPositiveSum);
      return 0;
    }
    rule = rule_of(top, c.temperature, p.tokens);
    int64_t k = is_greedy(c.temperature) ? 1 : c.top_k;
    if (k > 0 && k < p.tokens) rule.cut = find_kth(ctx, shared, p, row, penalty, rule, k);
    uint64_t sum = weigh(ctx, shared, p, row, penalty, rule);
    if (c.top_p < 1.0f) {
      Crossing cut = find(ctx, shared, p, row, penalty, rule, share_of(sum, c.top_p));
      rule.cut = cut.at, sum = cut.sum;
    }
    if (c.min_p > 0.0f) {
      rule.least = least_of(c.min_p, rule.up);
      sum = weigh(ctx, shared, p, row, penalty, rule);
    }
    if (c.typical_p < 1.0f) {
      rule.mean = mean_distance(ctx, shared, p, row, penalty, rule, sum), rule.banded = true;
      Crossing band = find(ctx, shared, p, row, penalty, rule, share_of(sum, c.typical_p));
      rule.band = band.at, sum = band.sum;
    }
    return sum;
  }
};

struct DrawTokens {
  using Params = RowParams;
  enum : int { kThreads = RowOrder::kThreads, kShared = RowOrder::kShared };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    for (int64_t row = ctx.bid_x(); row < p.rows; row += ctx.gdim_x()) {
      Penalty penalty;
      Rule rule = rule_of(0.0f, 1.0f, p.tokens);
      uint64_t sum = RowOrder::keep(ctx, shared, p, row, penalty, rule);
      for (int64_t j = 0; j < p.samples; ++j) {
        int64_t token = 0;
        if (sum != 0u) {
          uint64_t drawn = random::below(simt::number<uint64_t>(p.seed), simt::number<uint64_t>(p.offset),
                                         uint64_t(row * p.samples + j), sum);
          token = RowOrder::find(ctx, shared, p, row, penalty, rule, drawn + 1u).at.position;
        }
        if (ctx.tid() == 0u) ((BCU_GLOBAL int64_t*)p.y)[row * p.y_row + j * p.y_step] = token;
      }
    }
  }
};

struct FilterTokens {
  using Params = RowParams;
  enum : int { kThreads = RowOrder::kThreads, kShared = RowOrder::kShared };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    for (int64_t row = ctx.bid_x(); row < p.rows; row += ctx.gdim_x()) {
      Penalty penalty;
      Rule rule = rule_of(0.0f, 1.0f, p.tokens);
      uint64_t sum = RowOrder::keep(ctx, shared, p, row, penalty, rule);
      float all = sum != 0u ? float(sum) : 1.0f;
      for (int64_t i = ctx.tid(); i < p.tokens; i += ctx.bdim()) {
        float v = logit_at(p, row, i, penalty);
        Entry e = entry_of(v, i, rule);
        float out = p.probabilities != 0 ? float(e.weight) / all : e.kept ? v : -math::infinity<float>();
        simt::store_element(p.y, p.y_element, row * p.y_row + i * p.y_step, out);
      }
    }
  }
};

}  // namespace baracuda::sampling
