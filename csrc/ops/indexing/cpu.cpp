// Elements collected by index: gather, index_select, take.
#include "ops/indexing/cpu.h"
#include "backends/cpu/family.h"
#include "backends/cpu/move_row.h"
#include "core/stream.h"
#include "core/tile.h"
#include "ops/indexing/places.h"

namespace baracuda::indexing {
namespace {

// Elements that will be read soon, asked for a few lines at a time.
struct Coming {
  const char* from;
  int64_t bytes;
  void fetch(int64_t part, int64_t parts) const {
    const int64_t lines = (bytes + kStreamLine - 1) / kStreamLine;
    for (int64_t i = lines * part / parts; i < lines * (part + 1) / parts; ++i)
      __builtin_prefetch(from + i * kStreamLine);
  }
};

// Runs of elements along the innermost step of the walk.
template <class T>
class Collector {
 public:
  Collector(const Places& p, const Step& run, const TensorView& x, const TensorView& y)
      : p_(p),
        run_(run),
        to_(run.stride[kPlain]),
        from_(run.stride[kIndexed]),
        x_(x.as<const T>()),
        y_(y.as<T>()),
        streams_(to_ == 1 && y.numel() * int64_t{sizeof(T)} >= kStreamBytes) {
    // Rows that are read as a whole, or nearly: where a line has an index of its own.
    const int64_t row = p.limit * int64_t{sizeof(T)};
    if (from_ == 0 && p.step == 1 && !p.is_flat && row <= run.size * kStreamLine) row_bytes_ = row;
  }
  ~Collector() {
    if (streams_) stream_fence();
  }

  // n elements from the offsets `at` on; `next`: where those after them begin.
  void collect(const int64_t* at, int64_t n, const int64_t* next) const {
    T* y = y_ + at[kPlain];
    const T* x = x_ + at[kIndexed];
    if (run_.stride[kIndices] == 0) return copy_row(at, n, next, x, y);
    int64_t ids[kIds];
    const int64_t parts = (n + kIds - 1) / kIds;
    const Coming coming{reinterpret_cast<const char*>(x_ + next[kIndexed]),
                        next[kIndexed] != at[kIndexed] ? row_bytes_ : 0};
    for (int64_t begin = 0, count; begin < n; begin += count) {
      count = std::min(kIds, n - begin);
      p_.read(at[kIndices] + begin * run_.stride[kIndices], run_.stride[kIndices], count, ids);
      coming.fetch(begin / kIds, parts);
      pick(x + begin * from_, ids, count, y + begin * to_);
    }
  }

 private:
  void pick(const T* x, const int64_t* ids, int64_t n, T* y) const {
    if (streams_) {
      alignas(kStreamLine) T picked[kIds];
      for (int64_t i = 0; i < n; ++i) picked[i] = x[i * from_ + ids[i]];
      return stream_bytes(reinterpret_cast<char*>(y), reinterpret_cast<const char*>(picked), n * int64_t{sizeof(T)});
    }
    if (from_ == 0 && to_ == 1) {
      for (int64_t i = 0; i < n; ++i) y[i] = x[ids[i]];
    } else {
      for (int64_t i = 0; i < n; ++i) y[i * to_] = x[i * from_ + ids[i]];
    }
  }

  // The whole run belongs to one index.
  void copy_row(const int64_t* at, int64_t n, const int64_t* next, const T* x, T* y) const {
    int64_t id, after;
    p_.read(at[kIndices], 0, 1, &id);
    p_.read(next[kIndices], 0, 1, &after);
    const int64_t bytes = n * int64_t{sizeof(T)};
    char* to = reinterpret_cast<char*>(y);
    const char* from = reinterpret_cast<const char*>(x + id);
    if (from_ != 1 || to_ != 1) return move_row(sizeof(T), to, to_, from, from_, n);
    const Coming coming{reinterpret_cast<const char*>(x_ + next[kIndexed] + after), bytes};
    coming.fetch(0, 1);
    streams_ ? stream_bytes(to, from, bytes) : static_cast<void>(std::memcpy(to, from, static_cast<size_t>(bytes)));
  }

  const Places& p_;
  const Step& run_;
  int64_t to_, from_;
  const T* x_;
  T* y_;
  int64_t row_bytes_ = 0;
  bool streams_;
};

template <class T>
void collect_all(const Places& p, const TensorView& x, const TensorView& y) {
  Steps3 all = p.outer;
  all.push(p.axis);
  for (int d = 0; d < p.inner.rank; ++d) all.push(p.inner.steps[d]);
  Step run;
  if (all.rank > 0) run = all.steps[--all.rank];
  // Long runs are cut, so that one row can occupy several threads.
  const int64_t piece = std::min(run.size, 2 * kParallelGrain),
                pieces = (run.size + piece - 1) / std::max<int64_t>(piece, 1), total = all.count() * pieces;
  const auto begin_of = [&](int64_t i, int64_t* at) {
    for (int k = 0; k < kTensors; ++k) at[k] = i % pieces * piece * run.stride[k];
    all.offset(i / pieces, at);
  };
  parallel_for(total, row_grain(piece), [&](int64_t begin, int64_t end) {
    const Collector<T> collector(p, run, x, y);
    int64_t at[kTensors], next[kTensors];
    begin_of(begin, at);
    for (int64_t i = begin; i < end; ++i) {
      begin_of(std::min(i + 1, total - 1), next);
      collector.collect(at, std::min(piece, run.size - i % pieces * piece), next);
      std::copy_n(next, kTensors, at);
    }
  });
}

}  // namespace

void copy_of(const TensorView& x, const TensorView& y) {
  const IterationSpace space = space_of(y);
  const Operand from = operand(x, space), to = operand(y, space);
  if (from.data != to.data) copy_tiles(space, from, to);
}

Status collect(const Launch& launch, By by) {
  using Args = CollectArgs;
  const TensorView &x = launch[Args::x], &index = launch[Args::index], &y = launch[Args::y];
  const CollectAttrs attrs = attributes<CollectAttrs>(launch);
  const Places p(by, attrs.axis, attrs.wrap != 0, y, x, index);
  if (!in_range(launch, Args::index, p.limit, p.wrap)) return Status::IndexOutOfRange;
  if (y.numel() == 0) return Status::Ok;
  with_cell(size_of(y.element), [&](auto cell) {
    using T = decltype(cell);
    collect_all<T>(p, x, y);
  });
  return Status::Ok;
}

}  // namespace baracuda::indexing

namespace baracuda {

template <indexing::By kBy>
struct CpuKernel<indexing::Collect<kBy>> {
  static Status run(const Launch& launch) { return indexing::collect(launch, kBy); }
};
template <indexing::By kBy>
struct CpuKernel<indexing::CollectBackward<kBy>> {
  static Status run(const Launch& launch) { return indexing::collect_backward(launch, kBy); }
};
template <>
struct CpuKernel<indexing::Assign<indexing::By::Element>> {
  static Status run(const Launch& launch) { return indexing::scatter(launch); }
};
template <>
struct CpuKernel<indexing::Assign<indexing::By::Axis>> {
  static Status run(const Launch& launch) { return indexing::index_copy(launch); }
};
template <>
struct CpuKernel<indexing::Reduce<indexing::By::Element>> {
  static Status run(const Launch& launch) { return indexing::scatter_reduce(launch); }
};
template <>
struct CpuKernel<indexing::Reduce<indexing::By::Axis>> {
  static Status run(const Launch& launch) { return indexing::index_add(launch); }
};
template <>
struct CpuKernel<indexing::Fill> {
  static Status run(const Launch& launch) { return indexing::fill(launch); }
};
template <>
struct CpuKernel<indexing::Nonzero> {
  static Status run(const Launch& launch) { return indexing::nonzero(launch); }
};
template <>
struct CpuKernel<indexing::MaskedSelect> {
  static Status run(const Launch& launch) { return indexing::masked_select(launch); }
};
template <>
struct CpuKernel<indexing::OneHot> {
  static Status run(const Launch& launch) { return indexing::one_hot(launch); }
};

}  // namespace baracuda

BCU_CPU_FAMILY(indexing)
