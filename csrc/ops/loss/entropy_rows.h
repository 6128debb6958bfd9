// Cross-entropy with class indices on the CPU, row by row: what a row's logits add up to, its loss and its gradient.
#pragma once
#include "baracuda/math/math.h"
#include "core/parallel.h"
#include "host/lanes.h"
#include "host/rows.h"
#include "host/short_rows.h"
#include "ops/loss/problem.h"

namespace baracuda::loss {

template <class C>
struct RowTerms {
  C max, sum;  // of the logits, of exp(x - max)
  C log_sum;
  C to_target;   // max - x[target]
  C mean_below;  // mean(weight * (max - x)), with smoothing only
};

// exp(x - max) of the row goes to `keep` where that is not null; keep may be the row itself.
template <class C>
RowTerms<C> row_terms(const Problems& p, const char* row, int64_t target, C* keep) {
  C in[kRowTile<C>], e[kRowTile<C>], weights[kRowTile<C>];
  const bool whole = p.classes <= kRowTile<C>;
  const C* v = nullptr;
  C max = -std::numeric_limits<C>::infinity();
  for (int64_t at = 0; at < p.classes; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, p.classes - at);
    v = read(p.logits, row, at, n, in);
    const C top = lane_max(v, n);
    max = top > max ? top : max;
  }
  RowTerms<C> terms{max, 0, 0, target < 0 ? C(0) : max - value_at<C>(p.logits, row, target), 0};
  CompensatedSum<C> sum, below;
  for (int64_t at = 0; at < p.classes; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, p.classes - at);
    if (!whole) v = read(p.logits, row, at, n, in);
    if (p.smoothing != 0 && p.weight.present())
      below.add(lane_sum<C>(n, [max](auto x, auto w) { return w * (max - x); }, v, p.class_weights(at, n, weights)));
    else if (p.smoothing != 0)
      below.add(lane_sum<C>(n, [max](auto x) { return max - x; }, v));
    C* to = keep ? keep + at : e;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = math::exp_weight(v[i] - max);
    sum.add(lane_sum<C>(n, [](auto x) { return x; }, to));
  }
  terms.sum = sum.value();
  terms.log_sum = math::log(terms.sum);
  if (p.smoothing != 0) terms.mean_below = below.value() / static_cast<C>(p.classes);
  return terms;
}

template <class C>
C row_loss(const Problems& p, const RowTerms<C>& t, int64_t target) {
  const C own = p.weight_of<C>(target);
  if (p.smoothing == 0) return own * (t.log_sum + t.to_target);
  const C s = static_cast<C>(p.smoothing);
  return (C(1) - s) * own * (t.log_sum + t.to_target) + s * (static_cast<C>(p.mean_weight) * t.log_sum + t.mean_below);
}

// Stores a row's results: its loss (kept in `losses` when they are added up later) and its lse.
template <class C>
void put_loss(const Problems& p, int64_t r, int64_t target, const RowTerms<C>& t, C* losses) {
  const C value = target < 0 ? C(0) : row_loss(p, t, target);
  if (p.reduction() == Reduction::None)
    put(p.loss, r, value);
  else
    losses[r] = value;
  if (p.lse.present()) put(p.lse, r, t.max + t.log_sum);
}

// What a row's gradient is made of: probability(v[i]) * scale - spread * weight[i], and less at the target.
template <class C>
struct RowGradient {
  C scale, spread, at_target;
};

// `share`: of the row's loss in the whole.
template <class C>
RowGradient<C> row_gradient(const Problems& p, int64_t target, C share, C over_sum) {
  const C s = static_cast<C>(p.smoothing), at_target = share * ((C(1) - s) * p.weight_of<C>(target));
  if (s == C(0)) return {at_target * over_sum, C(0), at_target};
  return {(at_target + share * s * static_cast<C>(p.mean_weight)) * over_sum, share * s / static_cast<C>(p.classes),
          at_target};
}

// kKept: `from` holds exp(x - max) already; otherwise it is read from the logits and `shift` is subtracted.
template <bool kKept, class C>
void gradient_row(const Problems& p, int64_t r, int64_t target_class, const C* kept, C shift, RowGradient<C> g) {
  C in[kRowTile<C>], out[kRowTile<C>], weights[kRowTile<C>];
  const char* row = p.logits_row(r);
  char* to = p.dlogits_row(r);
  // Without smoothing nothing is spread.
  const bool weighted = g.spread != C(0) && p.weight.present();
  const C spread = weighted ? C(0) : g.spread;
  for (int64_t at = 0; at < p.classes; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, p.classes - at);
    const C* v = kKept ? kept + at : read(p.logits, row, at, n, in);
    C* d = target(p.dlogits, to, at, out);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) d[i] = (kKept ? v[i] : math::exp(v[i] - shift)) * g.scale - spread;
    if (weighted) {
      const C* w = p.class_weights(at, n, weights);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) d[i] -= g.spread * w[i];
    }
    if (target_class >= at && target_class < at + n) d[target_class - at] -= g.at_target;
    write(p.dlogits, to, at, n, d);
  }
}

// `kept`: exp(x - max) of the row, or null.
template <class C>
void put_gradient(const Problems& p, int64_t r, int64_t target, const RowTerms<C>& t, C share, const C* kept) {
  if (target < 0) return clear_row<C>(p, r);
  const RowGradient<C> g = row_gradient(p, target, share, C(1) / t.sum);
  kept ? gradient_row<true, C>(p, r, target, kept, C(0), g) : gradient_row<false, C>(p, r, target, nullptr, t.max, g);
}

// Without smoothing, rows of few classes are done as many at once as a vector has lanes.
inline bool in_short_rows(const Problems& p) { return p.smoothing == 0 && is_short(p.logits); }

// Calls row(r, target, terms, powers) for rows [begin, end), which are short; powers are exp(x - max).
template <class C, class Row>
void short_rows(const Problems& p, int64_t begin, int64_t end, const Row& row) {
  using L = Lanes<C>;
  const ShortRows<C> logits(p.logits);
  typename ShortRows<C>::Block in, powers;
  const int64_t n = p.classes;
  for (int64_t r = begin; r < end; r += L::kWidth) {
    const int rows = static_cast<int>(std::min<int64_t>(L::kWidth, end - r));
    const C* v = logits.read(r - p.first, rows, in);
    const auto [max, sum] = weigh_rows(v, rows, n, powers.values);
    C logs[L::kWidth];
#pragma GCC ivdep
    for (int k = 0; k < L::kWidth; ++k) logs[k] = math::log(C(sum[k]));
    for (int k = 0; k < rows; ++k) {
      const int64_t t = p.counted_target(r + k);
      row(r + k, t, RowTerms<C>{max[k], sum[k], logs[k], t < 0 ? C(0) : max[k] - v[k * n + t], 0},
          powers.values + k * n);
    }
  }
}

// Where a fused row's exponentials are kept: on the stack, in the output, in the strip's scratch, or nowhere.
template <class C>
void fused_row(const Problems& p, int64_t r, C share, C* losses, C* scratch) {
  C stack[kRowTile<C>];
  C* keep = p.classes <= kRowTile<C>         ? stack
            : p.dlogits.template direct<C>() ? reinterpret_cast<C*>(p.dlogits_row(r))
                                             : scratch;
  const int64_t t = p.counted_target(r);
  const RowTerms<C> terms = row_terms<C>(p, p.logits_row(r), t, keep);
  put_loss(p, r, t, terms, losses);
  put_gradient(p, r, t, terms, share, keep);
}

}  // namespace baracuda::loss
