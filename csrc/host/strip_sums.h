// Sums over all rows, of as many values as a row has: per strip of rows, in blocks, then over the strips, in order.
#pragma once
#include "core/parallel.h"
#include "host/rows.h"
#include "host/strips.h"

namespace baracuda {

inline constexpr int64_t kStripBlock = 64;  // rows of a block

// Sums of a block of rows and of the blocks, for one gradient of one strip.
template <class C>
struct Partial {
  C *block = nullptr, *total = nullptr;
  bool present() const { return block != nullptr; }
  void flush(int64_t n) {
    if (!present()) return;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) total[i] += block[i], block[i] = 0;
  }
};

// The strips' totals added up in order.
template <class C>
void finish_strips(const RowMap& gradient, const C* totals, int64_t step, int64_t strips, int64_t length) {
  parallel_for(length, kRowTile<C>, [&](int64_t begin, int64_t end) {
    C out[kRowTile<C>];
    for (int64_t at = begin; at < end; at += kRowTile<C>) {
      const int64_t n = std::min(kRowTile<C>, end - at);
      C* sum = target(gradient, gradient.data, at, out);
      for (int64_t i = 0; i < n; ++i) sum[i] = 0;
      for (int64_t s = 0; s < strips; ++s) {
        const C* p = totals + s * step + at;
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) sum[i] += p[i];
      }
      write(gradient, gradient.data, at, n, sum);
    }
  });
}

}  // namespace baracuda
