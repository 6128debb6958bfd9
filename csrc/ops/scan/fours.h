// Running sums and products of floats and halves in doubles, four positions at a time: a prefix by pairs within them,
// and what came before joined with each, so that one operation of four waits for its predecessor. Products of four
// floats stay within a double's range, so only the running product itself can leave it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "host/level.h"
#include "host/round_once.h"

namespace baracuda::scan {

template <bool kProduct, class V>
inline void join_to(V& a, const V& b) {
  if constexpr (kProduct)
    a *= b;
  else
    a += b;
}
template <bool kProduct, class C>
inline C join(C a, C b) {
  join_to<kProduct>(a, b);
  return a;
}

// A running value as what its float or half is rounded from.
template <bool kHalves>
inline float told(double v) {
  return kHalves ? round_once(v) : static_cast<float>(v);
}

// Along a line, a tile after another; all tiles but the last are of whole fours.
template <bool kProduct, bool kHalves>
class FourLine {
 public:
  void scan(const float* x, int64_t n, float* y) {
    Four total = Four{} + before_;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      Four v;
      widen(x + i, v);
      next(v, total);
      tell(v, y + i);
    }
    before_ = total[0];
    if (i == n) return;
    double some = static_cast<double>(x[i]);
    y[i] = told<kHalves>(join<kProduct>(before_, some));
    for (int64_t k = i + 1; k < n; ++k) {
      some = join<kProduct>(some, static_cast<double>(x[k]));
      y[k] = told<kHalves>(join<kProduct>(before_, some));
    }
  }

 private:
  typedef double Four __attribute__((vector_size(32)));
  typedef float Singles __attribute__((vector_size(16)));
  static constexpr double kNone = kProduct ? 1 : 0;

  // By reference: without AVX vectors of 32 bytes cannot be passed.
  static void widen(const float* x, Four& v) {
    Singles from;
    std::memcpy(&from, x, sizeof from);
    level::widen(from, v);
  }
  static void tell(Four& v, float* to) {
    if constexpr (kHalves) {
      typedef int64_t Bits __attribute__((vector_size(32)));
      Bits u = (Bits)v;
      rest_to_odd(u);
      v = (Four)u;
    }
    const Singles found = __builtin_convertvector(v, Singles);
    std::memcpy(to, &found, sizeof found);
  }
  static void next(Four& v, Four& total) {
    const Four none = Four{} + kNone;
    join_to<kProduct>(v, __builtin_shufflevector(v, none, 4, 0, 4, 2));
    join_to<kProduct>(v, __builtin_shufflevector(v, none, 4, 4, 1, 1));
    const Four last = __builtin_shufflevector(v, v, 3, 3, 3, 3);
    join_to<kProduct>(v, total);
    join_to<kProduct>(total, last);
  }

  double before_ = kNone;
};

// The same sums for `kColumns` lines side by side, of which four positions are given at once, or the last one to three.
template <bool kProduct, bool kHalves, int64_t kColumns>
class FourColumns {
 public:
  explicit FourColumns(int64_t n) { std::fill_n(before_, n, kProduct ? 1 : 0); }
  // Columns [begin, begin + n) of kRows positions.
  template <int kRows>
  void scan(int64_t begin, int64_t n, const float* const* x, float* const* y) {
    double* before = before_ + begin;
    const float *x0 = x[0], *x1 = x[kRows > 1 ? 1 : 0], *x2 = x[kRows > 2 ? 2 : 0], *x3 = x[kRows > 3 ? 3 : 0];
    float *y0 = y[0], *y1 = y[kRows > 1 ? 1 : 0], *y2 = y[kRows > 2 ? 2 : 0], *y3 = y[kRows > 3 ? 3 : 0];
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      const double was = before[j], v0 = double(x0[j]), v1 = double(x1[j]), v2 = double(x2[j]), v3 = double(x3[j]);
      const double some = join<kProduct>(v0, v1);
      y0[j] = told<kHalves>(join<kProduct>(was, v0));
      if (kRows > 1) y1[j] = told<kHalves>(join<kProduct>(was, some));
      if (kRows > 2) y2[j] = told<kHalves>(join<kProduct>(was, join<kProduct>(some, v2)));
      if (kRows > 3) {
        const double all = join<kProduct>(was, join<kProduct>(some, join<kProduct>(v2, v3)));
        before[j] = all, y3[j] = told<kHalves>(all);
      }
    }
  }

 private:
  double before_[kColumns];
};

}  // namespace baracuda::scan
