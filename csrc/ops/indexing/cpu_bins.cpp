// How many there are of each: bincount and histc.
#include <atomic>

#include "ops/indexing/bins.h"
#include "ops/indexing/cpu.h"
#include "ops/indexing/places.h"

namespace baracuda::indexing {
namespace {

// Counts in tables of the workspace. What is in none of the bins has a counter behind them.
class Tables {
 public:
  Tables(void* workspace, int64_t bins)
      : counts_(static_cast<int64_t*>(workspace)),
        size_(bins + 1),
        each_(bins <= kVeryFewBins ? kTables : 1),
        shared_(bins > kFewBins) {
    const int64_t all = tables() * size_;
    parallel_for(all, kParallelGrain,
                 [&](int64_t begin, int64_t end) { std::fill_n(counts_ + begin, end - begin, 0); });
  }

  // Adds n bins, which bin(i) gives, from a part of the tensor.
  template <class Bin>
  void add(int64_t n, Bin&& bin) const {
    if (shared_) {
      for (int64_t i = 0; i < n; ++i) std::atomic_ref<int64_t>(counts_[bin(i)]).fetch_add(1, std::memory_order_relaxed);
      return;
    }
    int64_t* mine = counts_ + thread_index() * each_ * size_;
    if (each_ == 1) {
      for (int64_t i = 0; i < n; ++i) ++mine[bin(i)];
      return;
    }
    // Of equal ones one after another each would wait for the last: they are counted side by side.
    int64_t i = 0;
    for (; i + kTables <= n; i += kTables)
      for (int64_t k = 0; k < kTables; ++k) ++mine[k * size_ + bin(i + k)];
    for (; i < n; ++i) ++mine[bin(i)];
  }

  template <class C>
  void write(const TensorView& y) const {
    parallel_for(size_ - 1, row_grain(tables()), [&](int64_t begin, int64_t end) {
      C found[kIds];
      for (int64_t n; begin < end; begin += n) {
        n = std::min(kIds, end - begin);
        for (int64_t i = 0; i < n; ++i) found[i] = static_cast<C>(total(begin + i));
        store<C>(y.element, y.as<char>() + begin * y.strides[0] * size_of(y.element), y.strides[0], found, n);
      }
    });
  }

 private:
  int64_t tables() const { return shared_ ? 1 : max_threads() * each_; }
  int64_t total(int64_t bin) const {
    int64_t sum = 0;
    for (int64_t t = 0; t < tables(); ++t) sum += counts_[t * size_ + bin];
    return sum;
  }

  int64_t* counts_;
  int64_t size_, each_;
  bool shared_;
};

inline constexpr int64_t kValues = 1024;  // read together

// Calls add(values, n) for all elements of a tensor, a few at a time.
template <class C, class Add>
void count(const TensorView& x, Add&& add) {
  const RowMap map = row_map(x, (1u << x.rank) - 1u);
  parallel_for(x.numel(), kParallelGrain, [&](int64_t begin, int64_t end) {
    C buffer[kValues];
    for (int64_t n; begin < end; begin += n) {
      n = std::min(kValues, end - begin);
      add(read(map, map.data, begin, n, buffer), n);
    }
  });
}

template <class C>
Status histc_of(const Launch& launch) {
  using Args = HistcArgs;
  const TensorView &x = launch[Args::x], &y = launch[Args::y];
  const C low = static_cast<C>(launch.scalars[Args::low].as_f64()),
          high = static_cast<C>(launch.scalars[Args::high].as_f64());
  const int64_t bins = y.shape[0];
  const Tables tables(launch.workspace, bins);
  count<C>(x, [&](const C* v, int64_t n) { tables.add(n, [&](int64_t i) { return bin_of(v[i], low, high, bins); }); });
  tables.write<C>(y);
  return Status::Ok;
}

}  // namespace

Status bincount(const Launch& launch) {
  using Args = BincountArgs;
  const TensorView &index = launch[Args::index], &y = launch[Args::y];
  const int64_t bins = y.shape[0];
  const Tables tables(launch.workspace, bins);
  std::atomic<int64_t> least{0}, most{-1};
  count<int64_t>(index, [&](const int64_t* ids, int64_t n) {
    IndexSpan span;
    span.add(ids, n);
    for (int64_t seen = most.load(); span.most > seen && !most.compare_exchange_weak(seen, span.most);) continue;
    if (span.least < 0) least.store(-1);
    tables.add(n, [&](int64_t i) { return std::min(static_cast<uint64_t>(ids[i]), static_cast<uint64_t>(bins)); });
  });
  if (least.load() < 0 && !in_range(launch, Args::index, INT64_MAX)) return Status::IndexOutOfRange;
  tables.write<int64_t>(y);
  *launch[Args::size].as<int64_t>() = most.load() + 1;
  return Status::Ok;
}

Status histc(const Launch& launch) {
  return launch.element == Element::F64 ? histc_of<double>(launch) : histc_of<float>(launch);
}

}  // namespace baracuda::indexing
