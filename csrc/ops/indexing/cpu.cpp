// Elements collected by index: gather, index_select, take.
#include "ops/indexing/cpu.h"
#include "backends/cpu/family.h"
#include "backends/cpu/move_row.h"
#include "core/tile.h"
#include "ops/indexing/places.h"

namespace baracuda::indexing {
namespace {

// A run of elements along the innermost step of the walk.
template <class T>
void collect_run(const Places& p, const Step& run, const int64_t* at, int64_t n, T* y, const T* x) {
  const int64_t to = run.stride[kPlain], from = run.stride[kIndexed];
  y += at[kPlain], x += at[kIndexed];
  int64_t ids[kIds];
  if (run.stride[kIndices] == 0) {
    p.read(at[kIndices], 0, 1, ids);
    move_row(sizeof(T), reinterpret_cast<char*>(y), to, reinterpret_cast<const char*>(x + ids[0]), from, n);
    return;
  }
  for (int64_t begin = 0, count; begin < n; begin += count) {
    count = std::min(kIds, n - begin);
    p.read(at[kIndices] + begin * run.stride[kIndices], run.stride[kIndices], count, ids);
    T* out = y + begin * to;
    const T* in = x + begin * from;
    for (int64_t i = 0; i < count; ++i) out[i * to] = in[i * from + ids[i]];
  }
}

template <class T>
void collect_all(const Places& p, T* y, const T* x) {
  Steps3 all = p.outer;
  all.push(p.axis);
  for (int d = 0; d < p.inner.rank; ++d) all.push(p.inner.steps[d]);
  Step run;
  if (all.rank > 0) run = all.steps[--all.rank];
  // Long runs are cut, so that one row can occupy several threads.
  const int64_t piece = std::min(run.size, 2 * kParallelGrain),
                pieces = (run.size + piece - 1) / std::max<int64_t>(piece, 1);
  parallel_for(all.count() * pieces, row_grain(piece), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % pieces * piece;
      int64_t at[kTensors];
      for (int k = 0; k < kTensors; ++k) at[k] = first * run.stride[k];
      all.offset(i / pieces, at);
      collect_run(p, run, at, std::min(piece, run.size - first), y, x);
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
  const TensorView &x = launch[0], &index = launch[1], &y = launch[2];
  const CollectAttrs attrs = attributes<CollectAttrs>(launch);
  const Places p(by, attrs.axis, attrs.wrap != 0, y, x, index);
  if (!in_range(launch, 1, p.limit, p.wrap)) return Status::IndexOutOfRange;
  if (y.numel() == 0) return Status::Ok;
  with_cell(size_of(y.element), [&](auto cell) {
    using T = decltype(cell);
    collect_all<T>(p, y.as<T>(), x.as<const T>());
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
template <indexing::By kBy>
struct CpuKernel<indexing::Assign<kBy>> {
  static Status run(const Launch& launch) { return indexing::assign(launch, kBy); }
};
template <indexing::By kBy>
struct CpuKernel<indexing::Reduce<kBy>> {
  static Status run(const Launch& launch) { return indexing::reduce(launch, kBy); }
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
