// Elements collected by index: gather, index_select, take.
#include "ops/indexing/cpu.h"
#include "backends/cpu/family.h"
#include "host/move_row.h"
#include "host/pick_rows.h"
#include "host/stream.h"
#include "host/tile.h"
#include "ops/indexing/places.h"

namespace baracuda::indexing {
namespace {

// Elements that will be read soon, asked for a few lines at a time.
class Coming {
 public:
  Coming(const void* from, int64_t bytes)
      : from_(static_cast<const char*>(from)), lines_((bytes + kStreamLine - 1) / kStreamLine) {}
  int64_t lines() const { return lines_; }
  void fetch(int64_t lines) {
    for (const int64_t end = std::min(at_ + lines, lines_); at_ < end; ++at_)
      __builtin_prefetch(from_ + at_ * kStreamLine);
  }

 private:
  const char* from_;
  int64_t lines_, at_ = 0;
};

// Runs of elements along the innermost step of the walk.
template <class T>
class Collector {
 public:
  Collector(const Places& p, const Step& run, const TensorView& x, const TensorView& y)
      : p_(p),
        ids_(p.reader()),
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
    const int64_t stride = run_.stride[kIndices];
    if (stride == 0) return copy_row(at, n, next, x, y);
    const bool direct = from_ == 0 && p_.step == 1;
    int64_t buffer[kIds];
    // The row that comes next is asked for bit by bit: 256 elements at once took half as long again.
    Coming coming(x_ + next[kIndexed], next[kIndexed] != at[kIndexed] ? row_bytes_ : 0);
    const int64_t lines = n > kGroup ? (coming.lines() * kGroup + n - 1) / n : coming.lines();
    int64_t group = streams_ ? (-reinterpret_cast<intptr_t>(y) & (kStreamLine - 1)) / int64_t{sizeof(T)} : 0;
    for (int64_t begin = 0, count; begin < n; begin += count) {
      count = std::min(kIds, n - begin);
      const int64_t offset = at[kIndices] + begin * stride;
      const int64_t* ids = buffer;
      if (direct)
        ids = ids_.get(offset, stride, count, buffer);
      else
        p_.read(offset, stride, count, buffer);
      for (int64_t i = 0, taken; i < count; i += taken, group = 0) {
        taken = std::min(group > 0 ? group : kGroup, count - i);
        coming.fetch(lines);
        if (direct)
          pick(x, ids + i, taken, y + (begin + i) * to_, [](int64_t) { return 0; });
        else
          pick(x + (begin + i) * from_, ids + i, taken, y + (begin + i) * to_, [this](int64_t k) { return k * from_; });
      }
    }
  }

 private:
  static constexpr int64_t kGroup = 2 * kStreamLine / sizeof(T);

  template <class From>
  void pick(const T* x, const int64_t* ids, int64_t n, T* y, From from) const {
    if (streams_) {
      alignas(kStreamLine) T picked[kGroup];
      for (int64_t i = 0; i < n; ++i) picked[i] = x[from(i) + ids[i]];
      return stream_bytes(reinterpret_cast<char*>(y), reinterpret_cast<const char*>(picked), n * int64_t{sizeof(T)});
    }
    if (to_ == 1) {
      for (int64_t i = 0; i < n; ++i) y[i] = x[from(i) + ids[i]];
    } else {
      for (int64_t i = 0; i < n; ++i) y[i * to_] = x[from(i) + ids[i]];
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
    Coming coming(x_ + next[kIndexed] + after, bytes);
    coming.fetch(coming.lines());
    streams_ ? stream_bytes(to, from, bytes) : static_cast<void>(std::memcpy(to, from, static_cast<size_t>(bytes)));
  }

  const Places& p_;
  const IndexReader ids_;
  const Step& run_;
  int64_t to_, from_;
  const T* x_;
  T* y_;
  int64_t row_bytes_ = 0;
  bool streams_;
};

template <class T>
void collect_runs(const Places& p, const Steps3& outer, const Step& run, const TensorView& x, const TensorView& y) {
  in_pieces(outer, run.size, 2 * kParallelGrain, 1, [&](auto& pieces, int64_t n) {
    const Collector<T> collector(p, run, x, y);
    int64_t at[kTensors], next[kTensors];
    pieces.begin_of(run, at);
    for (int64_t i = 0, count; i < n; ++i) {
      count = pieces.size();
      pieces.next();
      pieces.begin_of(run, next);
      collector.collect(at, count, next);
      std::copy_n(next, kTensors, at);
    }
  });
}

// Short rows: those of `run`, one for each index along `picked`.
void collect_rows(const Places& p, const Steps3& outer, const Step& picked, const Step& run, const TensorView& x,
                  const TensorView& y) {
  const int64_t size = size_of(y.element), bytes = run.size * size, stride = picked.stride[kIndices];
  const IndexReader reader = p.reader();
  in_pieces(outer, picked.size, std::max(kIds, kParallelGrain / run.size), run.size, [&](auto& pieces, int64_t n) {
    const RowPicker rows(bytes, p.step * size, picked.stride[kPlain] * size, y.numel() * size >= kStreamBytes);
    int64_t at[kTensors], buffer[kIds];
    for (; n > 0; --n, pieces.next()) {
      pieces.begin_of(picked, at);
      const int64_t all = pieces.size(), most = reader.in_place(stride) ? all : kIds;
      for (int64_t i = 0, count; i < all; i += count) {
        count = std::min(most, all - i);
        const int64_t* ids = reader.get(at[kIndices] + i * stride, stride, count, buffer);
        rows.pick(x.as<char>() + at[kIndexed] * size, ids, count,
                  y.as<char>() + (at[kPlain] + i * picked.stride[kPlain]) * size);
      }
    }
  });
}

void collect_all(const Places& p, const TensorView& x, const TensorView& y) {
  Steps3 all = p.outer;
  all.push(p.axis);
  for (int d = 0; d < p.inner.rank; ++d) all.push(p.inner.steps[d]);
  Step run;
  if (all.rank > 0) run = all.steps[--all.rank];
  const bool row = run.stride[kIndices] == 0 && run.stride[kIndexed] == 1 && run.stride[kPlain] == 1;
  if (row && !p.is_flat && run.size * size_of(y.element) <= kPickedBytes && all.rank > 0) {
    const Step& above = all.steps[all.rank - 1];
    if (above.stride[kIndices] != 0 && above.stride[kIndexed] == 0) {
      const Step picked = above;
      --all.rank;
      return collect_rows(p, all, picked, run, x, y);
    }
  }
  with_cell(size_of(y.element), [&](auto cell) { collect_runs<decltype(cell)>(p, all, run, x, y); });
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
  Places p(by, attrs.axis, attrs.wrap != 0, y, x, index);
  if (!in_range(launch, Args::index, p.limit, p.wrap, &p.wrap)) return Status::IndexOutOfRange;
  if (y.numel() > 0) collect_all(p, x, y);
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
template <>
struct CpuKernel<indexing::Bincount> {
  static Status run(const Launch& launch) { return indexing::bincount(launch); }
};
template <>
struct CpuKernel<indexing::Histc> {
  static Status run(const Launch& launch) { return indexing::histc(launch); }
};

}  // namespace baracuda

BCU_CPU_FAMILY(indexing)
