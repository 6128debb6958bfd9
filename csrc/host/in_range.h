// Indices: read where they lie where that is possible, and checked before anything is written.
#pragma once
#include <algorithm>
#include <atomic>
#include <limits>

#include "core/parallel.h"
#include "host/rows.h"
#include "host/runs.h"

namespace baracuda {

inline constexpr int64_t kIds = 256;  // indices read together

// Indices of a tensor as 64-bit integers: its own memory where it holds those one after another, else a buffer.
class IndexReader {
 public:
  // wrap: what is added to negative ones; 0 where there are none.
  IndexReader(Element element, const char* data, int64_t wrap)
      : data_(data),
        load_(loader<int64_t>(element)),
        size_(size_of(element)),
        wrap_(wrap),
        whole_(element == Element::I64) {}

  // n <= kIds of them from `offset` on, `stride` apart; or, from the tensor's own memory, as many as there are.
  const int64_t* get(int64_t offset, int64_t stride, int64_t n, int64_t* buffer) const {
    if (in_place(stride)) return reinterpret_cast<const int64_t*>(data_) + offset;
    load_(data_ + offset * size_, stride, buffer, n);
    if (wrap_ != 0) {
      for (int64_t i = 0; i < n; ++i) buffer[i] += buffer[i] < 0 ? wrap_ : 0;
    }
    return buffer;
  }
  bool in_place(int64_t stride) const { return whole_ && stride == 1 && wrap_ == 0; }

 private:
  const char* data_;
  LoadFn<int64_t> load_;
  int64_t size_, wrap_;
  bool whole_;
};

// The least and the largest of some indices.
struct IndexSpan {
  int64_t least = std::numeric_limits<int64_t>::max(), most = std::numeric_limits<int64_t>::min();

  template <class I>
  void add(const I* ids, int64_t n) {
    I low = std::numeric_limits<I>::max(), high = std::numeric_limits<I>::min();
    for (int64_t i = 0; i < n; ++i) low = std::min(low, ids[i]), high = std::max(high, ids[i]);
    if (n > 0) least = std::min<int64_t>(least, low), most = std::max<int64_t>(most, high);
  }
  void add(const MergedView& view, int64_t begin, int64_t n) {
    if (view.contiguous()) {
      if (view.element == Element::I64) return add(reinterpret_cast<const int64_t*>(view.data) + begin, n);
      if (view.element == Element::I32) return add(reinterpret_cast<const int32_t*>(view.data) + begin, n);
    }
    int64_t ids[kIds];
    for (int64_t i = 0, count; i < n; i += count) {
      count = std::min(kIds, n - i);
      load_span(view, begin + i, count, ids);
      add(ids, count);
    }
  }
};

// Whether all indices are in range; the first that is not becomes the launch's failure. `negative`: whether any of them
// counts from the end.
inline bool in_range(const Launch& launch, int param, int64_t limit, bool wrap = false, bool* negative = nullptr) {
  const TensorView& index = launch[param];
  const MergedView view(index);
  const int64_t lowest = wrap ? -limit : 0;
  std::atomic<int64_t> first{INT64_MAX};
  std::atomic<bool> below{false};
  parallel_for(index.numel(), kParallelGrain, [&](int64_t begin, int64_t end) {
    IndexSpan span;
    span.add(view, begin, end - begin);
    if (span.least < 0) below.store(true, std::memory_order_relaxed);
    if (span.least >= lowest && span.most < limit) return;
    int64_t id;  // nothing is in range where the limit is 0
    do {
      load_span(view, begin++, 1, &id);
    } while (id >= lowest && id < limit);
    int64_t seen = first.load(std::memory_order_relaxed);
    while (begin - 1 < seen && !first.compare_exchange_weak(seen, begin - 1)) continue;
  });
  if (negative) *negative = below.load();
  const int64_t at = first.load();
  if (at == INT64_MAX) return true;
  int64_t value;
  load_span(view, at, 1, &value);
  if (launch.failure) *launch.failure = {param, at, value, limit};
  return false;
}

}  // namespace baracuda
