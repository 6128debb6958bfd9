// Folds with a state of several numbers: mean and sum of squared deviations, maximum and sum of exponentials.
#pragma once
#include "baracuda/math/log.h"
#include "host/online.h"
#include "ops/reduce/fold.h"

namespace baracuda::reduce {

template <class C>
struct Moments {
  C mean = 0, squares = 0;  // squares: sum of (x - mean)^2
  int64_t n = 0;

  // Chan, Golub and LeVeque.
  void merge(C other_mean, C other_squares, int64_t m) {
    if (m == 0) return;
    const int64_t all = n + m;
    const C share = static_cast<C>(m) / static_cast<C>(all), d = other_mean - mean;
    squares += other_squares + d * (d * (static_cast<C>(n) * share));  // a weight of 0 comes first
    mean += d * share;
    n = all;
  }
};

template <class C>
struct MomentRow {
  Moments<C> all;
  // Two passes over blocks that stay in L1. The mean is counted from the block's first value, so that it is exact where
  // all are equal.
  void add(const C* p, int64_t n) {
    for (; n > 0; p += Lanes<C>::kBlock, n -= Lanes<C>::kBlock) {
      const int64_t piece = std::min<int64_t>(n, Lanes<C>::kBlock);
      const auto above = [first = p[0]](auto v) { return v - first; };
      const C total = piece == Lanes<C>::kBlock ? block_sum(p, above) : lane_sum<C>(piece, above, p);
      const C mean = p[0] + total / static_cast<C>(piece);
      all.merge(mean, lane_sum<C>(piece, [mean](auto v) { return (v - mean) * (v - mean); }, p), piece);
    }
  }
  void merge(const Moments<C>* p, int64_t n) {
    for (int64_t i = 0; i < n; ++i) all.merge(p[i].mean, p[i].squares, p[i].n);
  }
  Moments<C> state() const { return all; }
};

// Welford's update within blocks of 64 rows, which are then merged.
template <class C>
struct MomentColumns {
  static constexpr int64_t kTile = 512;
  static constexpr int kRowsPerFlush = 64;
  C low_mean[kTile], low_squares[kTile], mean[kTile], squares[kTile];
  Moments<C> out[kTile];
  int64_t n = 0, count = 0;
  int pending = 0;

  explicit MomentColumns(int64_t columns) : n(columns) {
    for (int64_t j = 0; j < n; ++j) low_mean[j] = low_squares[j] = mean[j] = squares[j] = 0;
  }
  void add(const C* r) {
    const C share = C(1) / static_cast<C>(++pending);
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) update(r[j], share, low_mean[j], low_squares[j]);
    if (pending >= kRowsPerFlush) flush();
  }
  void add4(const C* a, const C* b, const C* c, const C* d) {
    if (pending + 4 > kRowsPerFlush) return add(a), add(b), add(c), add(d);
    const C first = C(1) / static_cast<C>(pending + 1), second = C(1) / static_cast<C>(pending + 2);
    const C third = C(1) / static_cast<C>(pending + 3), fourth = C(1) / static_cast<C>(pending + 4);
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      C m = low_mean[j], s = low_squares[j];
      update(a[j], first, m, s);
      update(b[j], second, m, s);
      update(c[j], third, m, s);
      update(d[j], fourth, m, s);
      low_mean[j] = m, low_squares[j] = s;
    }
    if ((pending += 4) >= kRowsPerFlush) flush();
  }
  void merge(const Moments<C>* p) {
    for (int64_t j = 0; j < n; ++j)
      out[j] = {mean[j], squares[j], count}, out[j].merge(p[j].mean, p[j].squares, p[j].n);
    count += p[0].n;
    for (int64_t j = 0; j < n; ++j) mean[j] = out[j].mean, squares[j] = out[j].squares;
  }
  const Moments<C>* finish() {
    flush();
    for (int64_t j = 0; j < n; ++j) out[j] = {mean[j], squares[j], count};
    return out;
  }

 private:
  static void update(C x, C share, C& m, C& s) {
    const C d = x - m;
    m += d * share;
    s += d * (x - m);
  }
  void flush() {
    if (pending == 0) return;
    const C share = static_cast<C>(pending) / static_cast<C>(count + pending), weight = static_cast<C>(count) * share;
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      const C d = low_mean[j] - mean[j];
      squares[j] += low_squares[j] + d * (d * weight);  // a weight of 0 comes first
      mean[j] += d * share;
      low_mean[j] = low_squares[j] = 0;
    }
    count += pending;
    pending = 0;
  }
};

template <class C>
struct MomentFold {
  using State = Moments<C>;
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
  using Base::max, Base::sum, Base::n;
  Exponentials<C> out[kTile];

  using Base::Base;
  void merge(const Exponentials<C>* p) {
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
  using State = Exponentials<C>;
  using Row = ExponentialRow<C>;
  using Columns = ExponentialColumns<C>;
};

}  // namespace baracuda::reduce
