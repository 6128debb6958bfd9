// How many there are of each: bincount and histc.
#include <atomic>

#include "ops/indexing/bins.h"
#include "ops/indexing/cpu.h"
#include "ops/indexing/places.h"

namespace baracuda::indexing {
namespace {

inline constexpr int64_t kValues = 1024;  // read together

// Counts in tables of the workspace, in N that holds as many as there are. What is in none of the bins has a counter
// behind them.
template <class N>
class Tables {
 public:
  Tables(void* workspace, int64_t bins)
      : size_(bins),
        used_(static_cast<int64_t*>(workspace)),
        counts_(reinterpret_cast<N*>(used_ + (size_.shared ? 0 : max_threads()))) {
    if (!size_.shared) {
      std::fill_n(used_, max_threads(), 0);
      return;
    }
    parallel_for(size_.all, kParallelGrain,
                 [&](int64_t begin, int64_t end) { std::fill_n(counts_ + begin, end - begin, N(0)); });
  }

  // Adds n <= kValues bins, of which `most` is the last that occurs.
  template <class I>
  void add(const I* bins, int64_t n, int64_t most) const {
    if (size_.shared) {
      for (int64_t i = 0; i < n; ++i) std::atomic_ref<N>(counts_[bins[i]]).fetch_add(1, std::memory_order_relaxed);
      return;
    }
    if (most >= size_.first) {
      N* const all = table(kAll, BinTables::kAside, size_.all);
      for (int64_t i = 0; i < n; ++i) ++all[bins[i]];
      return;
    }
    // Of equal ones one after another each would wait for the last: they are counted side by side.
    N* const a = table(kFirst, 0, BinTables::kAside * step());
    N *const b = a + step(), *const c = b + step(), *const d = c + step();
    int64_t i = 0;
    for (; i + BinTables::kAside <= n; i += BinTables::kAside)
      ++a[bins[i]], ++b[bins[i + 1]], ++c[bins[i + 2]], ++d[bins[i + 3]];
    for (; i < n; ++i) ++a[bins[i]];
  }

  template <class C>
  void write(const TensorView& y) const {
    parallel_for(size_.all - 1, row_grain(4 * BinTables::kAside), [&](int64_t begin, int64_t end) {
      int64_t sums[kIds];
      C found[kIds];
      for (int64_t n; begin < end; begin += n) {
        n = std::min(kIds, end - begin);
        sum(begin, n, sums);
        for (int64_t i = 0; i < n; ++i) found[i] = static_cast<C>(sums[i]);
        store<C>(y.element, y.as<char>() + begin * y.strides[0] * size_of(y.element), y.strides[0], found, n);
      }
    });
  }

 private:
  enum : int64_t { kFirst = 1, kAll = 2 };

  int64_t step() const { return size_.first + BinTables::kApart; }
  // Table k of this thread, zeroed when it has something to count.
  N* table(int64_t which, int64_t k, int64_t n) const {
    const int thread = thread_index();
    N* const mine = counts_ + thread * size_.of_thread() + k * step();
    if ((used_[thread] & which) == 0) std::fill_n(mine, n, N(0)), used_[thread] |= which;
    return mine;
  }
  void sum(int64_t begin, int64_t n, int64_t* to) const {
    std::fill_n(to, n, 0);
    const auto add = [&](const N* counts, int64_t there) {
      const int64_t some = std::min(n, there - begin);
      for (int64_t i = 0; i < some; ++i) to[i] += static_cast<int64_t>(counts[begin + i]);
    };
    if (size_.shared) return add(counts_, size_.all);
    for (int t = 0; t < max_threads(); ++t) {
      const N* const mine = counts_ + t * size_.of_thread();
      for (int64_t k = 0; (used_[t] & kFirst) != 0 && k < BinTables::kAside; ++k) add(mine + k * step(), size_.first);
      if ((used_[t] & kAll) != 0) add(mine + BinTables::kAside * step(), size_.all);
    }
  }

  const BinTables size_;
  int64_t* const used_;
  N* const counts_;
};
// Calls f with the Tables for so many values.
template <class F>
void with_tables(void* workspace, int64_t bins, int64_t values, F&& f) {
  if (values <= int64_t{UINT32_MAX})
    f(Tables<uint32_t>(workspace, bins));
  else
    f(Tables<uint64_t>(workspace, bins));
}

// Calls add(values, n) for all elements of a tensor, a few at a time; elements that are no C are converted.
template <class C, bool kAsIs, class Add>
void count(const RowMap& map, Add&& add) {
  parallel_for(map.length(), kParallelGrain, [&](int64_t begin, int64_t end) {
    C buffer[kAsIs ? 1 : kValues];
    for (int64_t n; begin < end; begin += n) {
      n = std::min(kValues, end - begin);
      if constexpr (kAsIs)
        add(reinterpret_cast<const C*>(map.data) + begin, n);
      else
        add(read(map, map.data, begin, n, buffer), n);
    }
  });
}
RowMap whole(const TensorView& x) { return row_map(x, (1u << x.rank) - 1u); }

template <class C>
Status histc_of(const Launch& launch) {
  using Args = HistcArgs;
  const TensorView &x = launch[Args::x], &y = launch[Args::y];
  const C low = static_cast<C>(launch.scalars[Args::low].as_f64()),
          high = static_cast<C>(launch.scalars[Args::high].as_f64());
  const int64_t bins = y.shape[0];
  with_tables(launch.workspace, bins, x.numel(), [&](const auto& tables) {
    count<C, false>(whole(x), [&](const C* v, int64_t n) {
      int64_t found[kValues];
      for (int64_t i = 0; i < n; ++i) found[i] = bin_of(v[i], low, high, bins);
      tables.add(found, n, bins);
    });
    tables.template write<C>(y);
  });
  return Status::Ok;
}

// Counts n ids; those without a bin in the counter behind the last one.
template <class N, class I>
void count_ids(const Tables<N>& tables, int64_t bins, const I* ids, int64_t n, std::atomic<int64_t>& least,
               std::atomic<int64_t>& most) {
  IndexSpan span;
  span.add(ids, n);
  for (int64_t seen = most.load(); span.most > seen && !most.compare_exchange_weak(seen, span.most);) continue;
  if (span.least < 0) least.store(-1);
  if (bins == 0) return;  // only the number of bins is asked for
  if (span.least >= 0 && span.most <= bins) return tables.add(ids, n, span.most);
  int64_t found[kValues];
  for (int64_t i = 0; i < n; ++i)
    found[i] = static_cast<int64_t>(std::min(static_cast<uint64_t>(ids[i]), static_cast<uint64_t>(bins)));
  tables.add(found, n, bins);
}

}  // namespace

Status bincount(const Launch& launch) {
  using Args = BincountArgs;
  const TensorView &index = launch[Args::index], &y = launch[Args::y];
  std::atomic<int64_t> least{0}, most{-1};
  bool good = true;
  with_tables(launch.workspace, y.shape[0], index.numel(), [&](const auto& tables) {
    const RowMap map = whole(index);
    const auto counted = [&](const auto* ids, int64_t n) { count_ids(tables, y.shape[0], ids, n, least, most); };
    if (index.element == Element::U8 && map.inner.dense())
      count<uint8_t, true>(map, counted);
    else if (index.element == Element::I32 && map.inner.dense())
      count<int32_t, true>(map, counted);
    else
      count<int64_t, false>(map, counted);
    good = least.load() == 0 || in_range(launch, Args::index, INT64_MAX);
    if (good) tables.template write<int64_t>(y);
  });
  if (!good) return Status::IndexOutOfRange;
  *launch[Args::size].as<int64_t>() = most.load() + 1;
  return Status::Ok;
}

Status histc(const Launch& launch) {
  return launch.element == Element::F64 ? histc_of<double>(launch) : histc_of<float>(launch);
}

}  // namespace baracuda::indexing
