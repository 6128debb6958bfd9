// Folds with a state of several numbers: mean and sum of squared deviations, maximum and sum of exponentials.
#pragma once
#include "baracuda/math/log.h"
#include "host/online.h"
#include "ops/reduce/columns.h"

namespace baracuda::reduce {

// Of values of either compute type. The mean is kept as a sum of two numbers: far from 0 its rounding alone would be as
// large as the deviations.
struct Moments {
  double mean = 0, low = 0, squares = 0;  // squares: sum of (x - mean - low)^2
  int64_t n = 0;

  // Chan, Golub and LeVeque.
  void merge(const Moments& other) {
    if (other.n == 0) return;
    if (n == 0) {
      *this = other;
      return;
    }
    const int64_t all = n + other.n;
    const double share = static_cast<double>(other.n) / static_cast<double>(all);
    squares += other.squares;
    move((other.mean - mean) + (other.low - low), share, static_cast<double>(n) * share, mean, low, squares);
    n = all;
  }
  // By `share` of d, the distance of the values that join from the mean so far; `weight` is what d^2 counts.
  static void move(double d, double share, double weight, double& mean, double& low, double& squares) {
    const double step = d * share, moved = mean + step, back = moved - mean;
    squares += d * (d * weight);
    low += (mean - (moved - back)) + (step - back);
    mean = moved;
  }
};

template <class C>
struct MomentRow {
  Moments all;
  // Two passes over blocks that stay in L1. The mean is counted from the block's first value, so that it is exact where
  // all are equal; what rounding it to C leaves over is taken out of the squares.
  void add(const C* p, int64_t n) {
    for (; n > 0; p += Lanes<C>::kBlock, n -= Lanes<C>::kBlock) {
      const int64_t piece = std::min<int64_t>(n, Lanes<C>::kBlock);
      const auto above = [first = p[0]](auto v) { return v - first; };
      const C total = piece == Lanes<C>::kBlock ? block_sum(p, above) : lane_sum<C>(piece, above, p);
      const double first = p[0], step = static_cast<double>(total) / static_cast<double>(piece);
      const C mean = static_cast<C>(first + step);
      const double squares = lane_sum<C>(piece, [mean](auto v) { return (v - mean) * (v - mean); }, p);
      const double low = (first - mean) + step, less = squares - static_cast<double>(piece) * low * low;
      all.merge({mean, low, less < 0 ? 0 : less, piece});
    }
  }
  void merge(const Moments* p, int64_t n) {
    for (int64_t i = 0; i < n; ++i) all.merge(p[i]);
  }
  Moments state() const { return all; }
};

// Blocks of 64 rows are summed about the mean of all before them, and merged. The first block takes the mean of its
// first rows: where values lie far from 0, their distances from any of these keep all their bits.
template <class C>
struct MomentColumns {
  static constexpr int64_t kTile = 512;
  static constexpr int kRowsPerFlush = 64;
  C about[kTile], sum[kTile], sum_squares[kTile];  // of the distances from `about`
  double mean[kTile], low[kTile], squares[kTile];
  Moments out[kTile];
  int64_t n = 0, count = 0;
  int pending = 0;

  explicit MomentColumns(int64_t columns) : n(columns) {
    for (int64_t j = 0; j < n; ++j) mean[j] = low[j] = squares[j] = 0;
  }
  void add(const C* r) {
    if (pending == 0) begin(r, r, r, r);
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      const C d = r[j] - about[j];
      sum[j] += d;
      sum_squares[j] += d * d;
    }
    if (++pending >= kRowsPerFlush) flush();
  }
  void add4(const C* a, const C* b, const C* c, const C* d) {
    if (pending + 4 > kRowsPerFlush) return add(a), add(b), add(c), add(d);
    if (pending == 0) begin(a, b, c, d);
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      const C from = about[j], p = a[j] - from, q = b[j] - from, r = c[j] - from, s = d[j] - from;
      sum[j] += (p + q) + (r + s);
      sum_squares[j] += (p * p + q * q) + (r * r + s * s);
    }
    if ((pending += 4) >= kRowsPerFlush) flush();
  }
  void merge(const Moments* p) {
    for (int64_t j = 0; j < n; ++j) {
      out[j] = {mean[j], low[j], squares[j], count}, out[j].merge(p[j]);
      mean[j] = out[j].mean, low[j] = out[j].low, squares[j] = out[j].squares;
    }
    count += p[0].n;
  }
  const Moments* finish() {
    flush();
    for (int64_t j = 0; j < n; ++j) out[j] = {mean[j], low[j], squares[j], count};
    return out;
  }

 private:
  void begin(const C* a, const C* b, const C* c, const C* d) {
    if (count == 0) {
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) about[j] = a[j] + ((b[j] - a[j]) + ((c[j] - a[j]) + (d[j] - a[j]))) / C(4);
    } else {
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) about[j] = static_cast<C>(mean[j]);
    }
    for (int64_t j = 0; j < n; ++j) sum[j] = sum_squares[j] = 0;
  }
  void flush() {
    if (pending == 0) return;
    const double rows = pending, all = static_cast<double>(count + pending), each = 1 / rows;
    const double share = rows / all, weight = static_cast<double>(count) * share;
    const bool first = count == 0;
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      const double total = sum[j], own = sum_squares[j] - total * (total * each), from = about[j];
      mean[j] = first ? from : mean[j];
      squares[j] += own < 0 ? 0 : own;
      Moments::move((from - mean[j]) + (total * each - low[j]), share, weight, mean[j], low[j], squares[j]);
    }
    count += pending;
    pending = 0;
  }
};

template <class C>
struct MomentFold {
  static constexpr bool kExact = false;
  using State = Moments;
  using Row = MomentRow<C>;
  using Columns = MomentColumns<C>;
};

// The largest number so far and sum(exp(x - largest)); the sum alone is NaN where a value is.
template <class C>
struct Exponentials {
  C max = -std::numeric_limits<C>::infinity(), sum = 0;

  void raise(C top) {
    if (!(top > max)) return;
    sum *= exp_below(max, exp_shift(top));
    max = top;
  }
  void merge(const Exponentials& other) {
    raise(other.max);
    sum += other.max == max ? other.sum : other.sum * exp_below(other.max, exp_shift(max));
  }
  C value() const { return max + math::log(sum); }
};

template <class C>
struct ExponentialRow {
  Exponentials<C> all;
  void add(const C* p, int64_t n) {
    C e[1024];
    for (; n > 0; p += 1024, n -= 1024) {
      const int64_t piece = std::min<int64_t>(n, 1024);
      all.raise(lane_max(p, piece));
      const C shift = exp_shift(all.max);
#pragma GCC ivdep
      for (int64_t i = 0; i < piece; ++i) e[i] = exp_below(p[i], shift);
      all.sum += lane_sum<C>(piece, [](auto v) { return v; }, e);
    }
  }
  void merge(const Exponentials<C>* p, int64_t n) {
    for (int64_t i = 0; i < n; ++i) all.merge(p[i]);
  }
  Exponentials<C> state() const { return all; }
};

template <class C>
struct ExponentialColumns : OnlineColumns<C, 512, true> {
  static constexpr int64_t kTile = 512;
  using Base = OnlineColumns<C, kTile, true>;
  using Base::max, Base::sum, Base::n, Base::pending;
  Exponentials<C> out[kTile];

  using Base::Base;
  void merge(const Exponentials<C>* p) {
    if (pending > 0) Base::flush();
    for (int64_t j = 0; j < n; ++j) {
      Exponentials<C> s{max[j], sum[j]};
      s.merge(p[j]);
      max[j] = s.max, sum[j] = s.sum;
    }
  }
  const Exponentials<C>* finish() {
    Base::flush();
    for (int64_t j = 0; j < n; ++j) out[j] = {max[j], sum[j]};
    return out;
  }
};

template <class C>
struct ExponentialFold {
  static constexpr bool kExact = false;
  using State = Exponentials<C>;
  using Row = ExponentialRow<C>;
  using Columns = ExponentialColumns<C>;
};

}  // namespace baracuda::reduce
