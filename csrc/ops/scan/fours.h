// Running sums and products of floats and halves in doubles, four positions at a time: a prefix by pairs within them,
// and what came before joined with each, so that one operation of four waits for its predecessor. Products of four
// floats stay within a double's range, so only the running product itself can leave it.
#pragma once
#include <cstdint>
#include <cstring>

#include "host/level.h"

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

// Along a line, a tile after another; all tiles but the last are of whole fours.
template <bool kProduct, class Out>
class FourLine {
 public:
  void scan(const float* x, int64_t n, Out* y) {
    Four total = Four{} + before_;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      Four v;
      widen(x + i, v);
      next(v, total);
      const Outs found = __builtin_convertvector(v, Outs);
      std::memcpy(y + i, &found, sizeof found);
    }
    before_ = total[0];
    if (i == n) return;
    double some = static_cast<double>(x[i]);
    y[i] = static_cast<Out>(join<kProduct>(before_, some));
    for (int64_t k = i + 1; k < n; ++k) {
      some = join<kProduct>(some, static_cast<double>(x[k]));
      y[k] = static_cast<Out>(join<kProduct>(before_, some));
    }
  }

 private:
  typedef double Four __attribute__((vector_size(32)));
  typedef Out Outs __attribute__((vector_size(4 * sizeof(Out))));
  static constexpr double kNone = kProduct ? 1 : 0;

  // By reference: without AVX vectors of 32 bytes cannot be passed.
  static void widen(const float* x, Four& v) {
    typedef float Singles __attribute__((vector_size(16)));
    Singles from;
    std::memcpy(&from, x, sizeof from);
    level::widen(from, v);
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

// The same sums for `kColumns` lines side by side, whose positions come one after another.
template <bool kProduct, int64_t kColumns>
class FourColumns {
 public:
  explicit FourColumns(int64_t n) {
    for (int64_t j = 0; j < n; ++j) before_[j] = kProduct ? 1 : 0;
  }
  // Columns [begin, begin + n) of position r.
  template <class Out>
  void scan(int64_t r, int64_t begin, int64_t n, const float* x, Out* y) {
    double *before = before_ + begin, *some = some_ + begin, *third = third_ + begin;
    const auto each = [&](auto next) {
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) y[j] = static_cast<Out>(next(j, static_cast<double>(x[j])));
    };
    switch (r % 4) {
      case 0:
        return each([=](int64_t j, double v) { return some[j] = v, join<kProduct>(before[j], v); });
      case 1:
        return each([=](int64_t j, double v) {
          return some[j] = join<kProduct>(some[j], v), join<kProduct>(before[j], some[j]);
        });
      case 2:
        return each(
            [=](int64_t j, double v) { return third[j] = v, join<kProduct>(before[j], join<kProduct>(some[j], v)); });
      default:
        return each([=](int64_t j, double v) {
          return before[j] = join<kProduct>(before[j], join<kProduct>(some[j], join<kProduct>(third[j], v)));
        });
    }
  }

 private:
  double before_[kColumns], some_[kColumns], third_[kColumns];
};

}  // namespace baracuda::scan
