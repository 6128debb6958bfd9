// Each of the values of a line once, on the CPU: entries are sorted, or lie as they are, and runs of equal ones counted
// in chunks, so that each chunk knows which run it begins in.
#include "host/move_row.h"
#include "ops/sort/cpu.h"
#include "ops/sort/kernels.h"

namespace baracuda::sort {
namespace {

// A vector of i64 that may be absent.
struct Numbers {
  int64_t* data;
  int64_t stride;

  explicit Numbers(const TensorView& t) : data(t.present() ? t.as<int64_t>() : nullptr), stride(t.strides[0]) {}
  explicit operator bool() const { return data != nullptr; }
  void put(int64_t at, int64_t number) const { data[at * stride] = number; }
};

template <class K>
class Runs {
 public:
  Runs(const Launch& launch, const Line& x, const Access<K>& access, const Entry<K>* entries)
      : x_(x),
        access_(access),
        entries_(entries),
        has_nan_(is_float(launch.element)),
        values_(launch[UniqueArgs::values]),
        indices_(launch[UniqueArgs::indices]),
        inverse_(launch[UniqueArgs::inverse]),
        counts_(launch[UniqueArgs::counts]),
        runs_(static_cast<int64_t*>(launch.workspace)),
        starts_(runs_ + run_chunks(x.length)) {}

  // Writes everything; returns how many runs there are.
  int64_t write() const {
    const int64_t chunks = run_chunks(x_.length);
    parallel_for(chunks, 2, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) count(c);
    });
    int64_t total = 0, last = 0;  // runs, and where the last one begins
    for (int64_t c = 0; c < chunks; ++c) {
      const int64_t own = runs_[c], start = starts_[c];
      runs_[c] = total, starts_[c] = last;
      total += own, last = own > 0 ? start : last;
    }
    parallel_for(chunks, 2, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) write_chunk(c);
    });
    put_count(total - 1, x_.length - last);
    return total;
  }

 private:
  // A NaN is equal to nothing.
  bool begins(int64_t at) const {
    const K key = entries_[at].key;
    return at == 0 || key != entries_[at - 1].key || (has_nan_ && key == access_.last());
  }
  void count(int64_t chunk) const {
    const int64_t begin = chunk * kRunChunk, end = std::min(x_.length, begin + kRunChunk);
    int64_t runs = 0, last = 0;
    for (int64_t i = begin; i < end; ++i) {
      const bool first = begins(i);
      runs += first, last = first ? i : last;
    }
    runs_[chunk] = runs, starts_[chunk] = last;
  }
  void put_count(int64_t run, int64_t n) const {
    if (counts_ && run < values_.shape[0]) counts_.put(run, n);
  }
  // The first entries of n runs, from `run` on.
  void put_values(int64_t run, const Entry<K>* first, int64_t n) const {
    n = std::min(n, values_.shape[0] - run);
    if (n <= 0) return;
    char* to = values_.as<char>() + run * values_.strides[0] * size_of(values_.element);
    access_.write(x_, first, n, 0, to, values_.strides[0]);
    for (int64_t i = 0; indices_ && i < n; ++i) indices_.put(run + i, static_cast<int64_t>(first[i].position));
  }
  void write_chunk(int64_t chunk) const {
    const int64_t begin = chunk * kRunChunk, end = std::min(x_.length, begin + kRunChunk);
    int64_t run = runs_[chunk] - 1, start = starts_[chunk], n = 0;
    Entry<K> first[kReadAtOnce];
    for (int64_t i = begin; i < end; ++i) {
      if (begins(i)) {
        if (run >= 0) put_count(run, i - start);
        ++run, start = i;
        first[n++] = entries_[i];
        if (n == kReadAtOnce) put_values(run + 1 - n, first, n), n = 0;
      }
      if (inverse_) inverse_.put(static_cast<int64_t>(entries_[i].position), run);
    }
    put_values(run + 1 - n, first, n);
  }

  Line x_;
  const Access<K>& access_;
  const Entry<K>* entries_;
  bool has_nan_;
  const TensorView& values_;
  Numbers indices_, inverse_, counts_;
  int64_t *runs_, *starts_;
};

template <class K>
int64_t write_unique(const Launch& launch, bool sorted) {
  const TensorView& t = launch[UniqueArgs::x];
  const Line x{t.as<char>(), t.strides[0], t.shape[0]};
  const Access<K> access = access_of<K>(launch.element);
  Entry<K>* a = reinterpret_cast<Entry<K>*>(static_cast<char*>(launch.workspace) + run_chunks(x.length) * 16);
  Entry<K>*b = a + x.length, *entries = a;
  if (!sorted) {
    parallel_for(x.length, kParallelGrain,
                 [&](int64_t begin, int64_t end) { access.read(x, begin, end - begin, 0, a + begin); });
  } else if (x.length < kLongLine) {
    entries = sort_short(access, x, 0, a, b);
  } else {
    const int64_t parts = std::clamp<int64_t>(x.length / kLongLine, 2, kMostParts);
    entries = LineSort<K>(access, x, 0, parts, reinterpret_cast<K*>(b + x.length)).run(a, b);
  }
  return Runs<K>(launch, x, access, entries).write();
}

// The elements of a vector from `first` on become zero.
void clear_rest(const TensorView& y, int64_t first) {
  if (!y.present() || first >= y.shape[0]) return;
  const int64_t size = size_of(y.element);
  clear_row(size, y.as<char>() + first * y.strides[0] * size, y.strides[0], y.shape[0] - first);
}

}  // namespace

void unique(const Launch& launch, bool sorted) {
  const int64_t n = launch[UniqueArgs::x].shape[0];
  const int64_t total = n == 0                            ? 0
                        : wide_entries(launch.element, n) ? write_unique<uint64_t>(launch, sorted)
                                                          : write_unique<uint32_t>(launch, sorted);
  for (int t : {UniqueArgs::values, UniqueArgs::indices, UniqueArgs::counts}) clear_rest(launch[t], total);
  *launch[UniqueArgs::count].as<int64_t>() = total;
}

}  // namespace baracuda::sort
