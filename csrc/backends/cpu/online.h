// sum(exp(x - max)) of columns side by side in one pass over memory: when a larger value comes, the sum so far shrinks.
#pragma once
#include <cstdint>
#include <limits>

#include "baracuda/math/exp.h"

namespace baracuda {

// What is taken from values before exp: infinities stay, so that no NaN arises that no value was.
template <class C>
inline C exp_shift(C max) {
  return math::fabs(max) <= std::numeric_limits<C>::max() ? max : C(0);
}

// NaN is passed over by the maximum and gets into the sum. Sums of 256 rows are added to a second sum, so that rounding
// errors of equal terms do not pile up.
template <class C, int64_t kWidth>
struct OnlineColumns {
  static constexpr int kRowsPerFlush = 256;
  C max[kWidth], low[kWidth], sum[kWidth];
  int64_t n;
  int pending = 0;

  explicit OnlineColumns(int64_t columns) : n(columns) {
    for (int64_t j = 0; j < n; ++j) max[j] = -std::numeric_limits<C>::infinity(), low[j] = sum[j] = 0;
  }
  void add(const C* r) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      const C top = larger(r[j], max[j]), shift = exp_shift(top), shrink = shrinkage(max[j], top);
      low[j] = low[j] * shrink + math::exp(r[j] - shift);
      sum[j] *= shrink;
      max[j] = top;
    }
    if (++pending >= kRowsPerFlush) flush();
  }
  void add4(const C* a, const C* b, const C* c, const C* d) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      // One after another: GCC does not make vectors of a tree of selections.
      C top = larger(a[j], max[j]);
      top = larger(b[j], top);
      top = larger(c[j], top);
      top = larger(d[j], top);
      const C shift = exp_shift(top), shrink = shrinkage(max[j], top);
      const C terms =
          (math::exp(a[j] - shift) + math::exp(b[j] - shift)) + (math::exp(c[j] - shift) + math::exp(d[j] - shift));
      low[j] = low[j] * shrink + terms;
      sum[j] *= shrink;
      max[j] = top;
    }
    if ((pending += 4) >= kRowsPerFlush) flush();
  }
  void flush() {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) sum[j] += low[j], low[j] = 0;
    pending = 0;
  }

 private:
  static C larger(C x, C m) { return x > m ? x : m; }
  // An infinite maximum that stays is no infinite factor.
  static C shrinkage(C max, C top) { return math::exp(max < top ? max - exp_shift(top) : C(0)); }
};

}  // namespace baracuda
