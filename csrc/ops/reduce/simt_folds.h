// The folds of the reductions that keep more than one number, for GPUs.
#pragma once
#include "baracuda/math/exp.h"
#include "baracuda/math/log.h"
#include "baracuda/math/pow.h"
#include "simt/fold.h"
#include "simt/state_fold.h"

namespace baracuda::reduce {

// What a fold is told (StateFoldParams::kind).
enum TermKind : int { kNanSum, kNanMean, kNorm1, kNorm2, kNormP };
enum CountKind : int { kCount, kAny, kAll };
enum ProductKind : int { kProduct, kProductGradient };
enum MomentKind : int { kVariance, kDeviation, kMeanRest };
enum RangeKind : int { kBoth, kMostMagnitude, kLeastMagnitude };
enum PlaceKind : int { kMaximum, kMinimum };
enum CosineKind : int { kCosine, kCosineGradient };

template <class P, class V>
BCU_DEVICE void put_result(BCU_CONSTANT P& p, int k, int64_t row, V value) {
  if (p.s.data[simt::kFoldResult + k]) simt::put_row_value(p.s, simt::kFoldResult + k, row, value);
}
template <class C>
BCU_DEVICE simt::LongSum<C> merged_sums(BCU_THREAD const simt::LongSum<C>& a, BCU_THREAD const simt::LongSum<C>& b) {
  simt::LongSum<C> s = a;
  simt::accumulate(s, b.sum);
  s.error += b.error;
  return s;
}

template <class C>
struct TermState {
  simt::LongSum<C> sum;
  int64_t n;
};
template <class Compute>
struct TermFold {
  using C = Compute;
  using State = TermState<C>;
  enum : int { kInputs = 1 };
  BCU_DEVICE State start() {
    State s;
    s.sum = simt::empty_sum<C>(), s.n = 0;
    return s;
  }
  template <class P>
  BCU_DEVICE void add(BCU_THREAD State& s, C v, C, BCU_CONSTANT P& p, int64_t) {
    C term = v;
    if (p.kind <= kNanMean) {
      term = v == v ? v : C(0);
      s.n += v == v ? 1 : 0;
    } else if (p.kind == kNorm2) {
      term = v * v;
    } else {
      term = math::fabs(v);
      if (p.kind == kNormP) term = math::pow(term, simt::number<C>(p.number));
    }
    simt::accumulate(s.sum, term);
  }
  BCU_DEVICE State merged(BCU_THREAD const State& a, BCU_THREAD const State& b) {
    State s;
    s.sum = merged_sums(a.sum, b.sum), s.n = a.n + b.n;
    return s;
  }
  template <class P>
  BCU_DEVICE void put(BCU_CONSTANT P& p, int64_t row, BCU_THREAD const State& s) {
    C v = simt::value_of(s.sum);
    if (p.kind == kNanMean) v = v / C(s.n);
    if (p.kind == kNorm2) v = math::sqrt(v);
    if (p.kind == kNormP) v = math::pow(v, C(1) / simt::number<C>(p.number));
    put_result(p, 0, row, v);
    put_result(p, 1, row, C(s.n));
  }
};

template <class Compute>
struct CountFold {
  using C = Compute;
  using State = int64_t;
  enum : int { kInputs = 1 };
  BCU_DEVICE State start() { return 0; }
  template <class P>
  BCU_DEVICE void add(BCU_THREAD State& s, C v, C, BCU_CONSTANT P&, int64_t) {
    s += v != C(0) ? 1 : 0;
  }
  BCU_DEVICE State merged(BCU_THREAD const State& a, BCU_THREAD const State& b) { return a + b; }
  template <class P>
  BCU_DEVICE void put(BCU_CONSTANT P& p, int64_t row, BCU_THREAD const State& s) {
    int64_t v = s;
    if (p.kind == kAny) v = s != 0 ? 1 : 0;
    if (p.kind == kAll) v = s == p.s.length ? 1 : 0;
    put_result(p, 0, row, v);
  }
};

template <class C>
struct ProductState {
  C all, others;  // others: without zeros
  int64_t zeros;
};
template <class Compute>
struct ProductFold {
  using C = Compute;
  using State = ProductState<C>;
  enum : int { kInputs = 1 };
  BCU_DEVICE State start() {
    State s;
    s.all = s.others = C(1), s.zeros = 0;
    return s;
  }
  template <class P>
  BCU_DEVICE void add(BCU_THREAD State& s, C v, C, BCU_CONSTANT P&, int64_t) {
    s.all *= v;
    s.others *= v == C(0) ? C(1) : v;
    s.zeros += v == C(0) ? 1 : 0;
  }
  BCU_DEVICE State merged(BCU_THREAD const State& a, BCU_THREAD const State& b) {
    State s;
    s.all = a.all * b.all, s.others = a.others * b.others, s.zeros = a.zeros + b.zeros;
    return s;
  }
  template <class P>
  BCU_DEVICE void put(BCU_CONSTANT P& p, int64_t row, BCU_THREAD const State& s) {
    put_result(p, 0, row, p.kind == kProduct ? s.all : s.others);
    put_result(p, 1, row, C(s.zeros));
  }
};

template <class C>
struct MomentState {
  C mean, low, squares;  // the mean is mean + low: far from 0 its rounding would be as large as the deviations
  int64_t n;
};
// Welford's update; states are merged as Chan, Golub and LeVeque do. `number` is what the squares are divided by.
template <class Compute>
struct MomentFold {
  using C = Compute;
  using State = MomentState<C>;
  enum : int { kInputs = 1 };
  BCU_DEVICE State start() {
    State s;
    s.mean = s.low = s.squares = C(0), s.n = 0;
    return s;
  }
  template <class P>
  BCU_DEVICE void add(BCU_THREAD State& s, C v, C, BCU_CONSTANT P&, int64_t) {
    s.n += 1;
    C d = (v - s.mean) - s.low;
    move(s, d / C(s.n));
    s.squares += d * ((v - s.mean) - s.low);
  }
  BCU_DEVICE void move(BCU_THREAD State& s, C step) {
    C moved = s.mean + step, back = moved - s.mean;
    s.low += (s.mean - (moved - back)) + (step - back);
    s.mean = moved;
  }
  BCU_DEVICE State merged(BCU_THREAD const State& a, BCU_THREAD const State& b) {
    if (b.n == 0) return a;
    if (a.n == 0) return b;
    State s = a;
    s.n = a.n + b.n;
    C share = C(b.n) / C(s.n), d = (b.mean - a.mean) + (b.low - a.low);
    s.squares = a.squares + (b.squares + d * d * (C(a.n) * share));
    move(s, d * share);
    return s;
  }
  template <class P>
  BCU_DEVICE void put(BCU_CONSTANT P& p, int64_t row, BCU_THREAD const State& s) {
    C v = s.squares / simt::number<C>(p.number), mean = s.mean + s.low;
    if (p.kind == kDeviation) v = math::sqrt(v);
    if (p.kind == kMeanRest) v = (s.mean - mean) + s.low;
    put_result(p, 0, row, v);
    put_result(p, 1, row, s.n > 0 && s.squares == s.squares ? mean : math::quiet_nan<C>());
  }
};

template <class C>
struct Magnitude {
  BCU_DEVICE C of(C v) { return math::fabs(v); }
};
template <>
struct Magnitude<int64_t> {
  BCU_DEVICE int64_t of(int64_t v) { return v; }
};
template <>
struct Magnitude<uint64_t> {
  BCU_DEVICE uint64_t of(uint64_t v) { return v; }
};

template <class C>
struct RangeState {
  C low, high;
};
template <class Compute>
struct RangeFold {
  using C = Compute;
  using State = RangeState<C>;
  enum : int { kInputs = 1 };
  BCU_DEVICE State start() {
    State s;
    s.low = simt::Ends<C>::high(), s.high = simt::Ends<C>::low();
    return s;
  }
  template <class P>
  BCU_DEVICE void add(BCU_THREAD State& s, C v, C, BCU_CONSTANT P& p, int64_t) {
    C x = p.kind == kBoth ? v : Magnitude<C>::of(v);
    s.low = simt::Smaller::of(s.low, x), s.high = simt::Larger::of(s.high, x);
  }
  BCU_DEVICE State merged(BCU_THREAD const State& a, BCU_THREAD const State& b) {
    State s;
    s.low = simt::Smaller::of(a.low, b.low), s.high = simt::Larger::of(a.high, b.high);
    return s;
  }
  template <class P>
  BCU_DEVICE void put(BCU_CONSTANT P& p, int64_t row, BCU_THREAD const State& s) {
    put_result(p, 0, row, p.kind == kMostMagnitude ? s.high : s.low);
    put_result(p, 1, row, s.high);
  }
};

template <bool kMax, class Compute>
struct PlaceFold {
  using C = Compute;
  using Search = simt::SearchFold<kMax, C>;
  using State = typename Search::State;
  enum : int { kInputs = 1 };
  BCU_DEVICE State start() { return Search::start(); }
  template <class P>
  BCU_DEVICE void add(BCU_THREAD State& s, C v, C, BCU_CONSTANT P&, int64_t i) {
    if (s.position < 0 || Search::beats(v, s.value)) s.value = v, s.position = i;
  }
  BCU_DEVICE State merged(BCU_THREAD const State& a, BCU_THREAD const State& b) { return Search::merged(a, b); }
  template <class P>
  BCU_DEVICE void put(BCU_CONSTANT P& p, int64_t row, BCU_THREAD const State& s) {
    put_result(p, 0, row, s.value);
    put_result(p, 1, row, s.position);
  }
};

// The largest number so far and sum(exp(x - largest)); the sum alone is NaN where a value is.
template <class C>
struct ExponentialState {
  C max;
  simt::LongSum<C> sum;
};
template <class Compute>
struct ExponentialFold {
  using C = Compute;
  using State = ExponentialState<C>;
  enum : int { kInputs = 1 };
  BCU_DEVICE State start() {
    State s;
    s.max = -math::infinity<C>(), s.sum = simt::empty_sum<C>();
    return s;
  }
  // What is taken from values before exp: infinities stay.
  BCU_DEVICE C shift_of(C max) { return math::fabs(max) < math::infinity<C>() ? max : C(0); }
  BCU_DEVICE void scale(BCU_THREAD State& s, C max) {
    C by = math::exp(s.max - shift_of(max));
    s.sum.sum *= by, s.sum.error *= by;
    s.max = max;
  }
  template <class P>
  BCU_DEVICE void add(BCU_THREAD State& s, C v, C, BCU_CONSTANT P&, int64_t) {
    if (v > s.max) scale(s, v);
    simt::accumulate(s.sum, math::exp(v - shift_of(s.max)));
  }
  BCU_DEVICE State merged(BCU_THREAD const State& a, BCU_THREAD const State& b) {
    State s = a, t = b;
    C max = b.max > a.max ? b.max : a.max;
    if (s.max < max) scale(s, max);
    if (t.max < max) scale(t, max);
    s.sum = merged_sums(s.sum, t.sum);
    return s;
  }
  template <class P>
  BCU_DEVICE void put(BCU_CONSTANT P& p, int64_t row, BCU_THREAD const State& s) {
    put_result(p, 0, row, shift_of(s.max) + math::log(simt::value_of(s.sum)));
  }
};

template <class C>
struct CosineState {
  simt::LongSum<C> ab, aa, bb;
};
// kCosineGradient: dx1 = dy (r0 x2 - r1 x1) and dx2 = dy (r0 x1 - r2 x2). `number` is eps.
template <class Compute>
struct CosineFold {
  using C = Compute;
  using State = CosineState<C>;
  enum : int { kInputs = 2 };
  BCU_DEVICE State start() {
    State s;
    s.ab = s.aa = s.bb = simt::empty_sum<C>();
    return s;
  }
  template <class P>
  BCU_DEVICE void add(BCU_THREAD State& s, C v, C u, BCU_CONSTANT P&, int64_t) {
    simt::accumulate(s.ab, v * u);
    simt::accumulate(s.aa, v * v);
    simt::accumulate(s.bb, u * u);
  }
  BCU_DEVICE State merged(BCU_THREAD const State& a, BCU_THREAD const State& b) {
    State s;
    s.ab = merged_sums(a.ab, b.ab), s.aa = merged_sums(a.aa, b.aa), s.bb = merged_sums(a.bb, b.bb);
    return s;
  }
  template <class P>
  BCU_DEVICE void put(BCU_CONSTANT P& p, int64_t row, BCU_THREAD const State& s) {
    C eps = simt::number<C>(p.number), a = math::sqrt(simt::value_of(s.aa)), b = math::sqrt(simt::value_of(s.bb));
    C norm_a = a < eps ? eps : a, norm_b = b < eps ? eps : b, y = simt::value_of(s.ab) / norm_a / norm_b;
    if (p.kind == kCosine) {
      put_result(p, 0, row, y);
      return;
    }
    // A length below eps counts as eps, which does not change with x.
    put_result(p, 0, row, C(1) / norm_a / norm_b);
    put_result(p, 1, row, a > eps ? y / norm_a / norm_a : C(0));
    put_result(p, 2, row, b > eps ? y / norm_b / norm_b : C(0));
  }
};

}  // namespace baracuda::reduce
