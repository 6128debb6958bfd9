// Checks indices before anything is written.
#pragma once
#include <algorithm>
#include <atomic>

#include "backends/cpu/rows.h"
#include "core/parallel.h"
#include "core/runs.h"

namespace baracuda {

inline constexpr int64_t kIds = 256;  // indices read together

// Whether all indices are in range; the first that is not becomes the launch's failure.
inline bool in_range(const Launch& launch, int param, int64_t limit, bool wrap = false) {
  const TensorView& index = launch[param];
  const MergedView view(index);
  const int64_t lowest = wrap ? -limit : 0;
  std::atomic<int64_t> first{INT64_MAX};
  parallel_for(index.numel(), kParallelGrain, [&](int64_t begin, int64_t end) {
    int64_t ids[kIds];
    for (int64_t n; begin < end; begin += n) {
      n = std::min(kIds, end - begin);
      load_span(view, begin, n, ids);
      int64_t bad = 0;
      for (int64_t i = 0; i < n; ++i) bad += ids[i] < lowest || ids[i] >= limit;
      if (bad == 0) continue;
      int64_t i = 0;
      while (ids[i] >= lowest && ids[i] < limit) ++i;
      int64_t seen = first.load(std::memory_order_relaxed);
      while (begin + i < seen && !first.compare_exchange_weak(seen, begin + i)) continue;
      return;
    }
  });
  const int64_t at = first.load();
  if (at == INT64_MAX) return true;
  int64_t value;
  load_span(view, at, 1, &value);
  if (launch.failure) *launch.failure = {param, at, value, limit};
  return false;
}

}  // namespace baracuda
