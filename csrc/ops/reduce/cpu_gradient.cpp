// Gradients of the reductions: dy spread over the folded dimensions.
#include "backends/cpu/parallel.h"
#include "core/tile.h"
#include "ops/reduce/axes.h"
#include "ops/reduce/kernels.h"
#include "ops/reduce/walk.h"

namespace baracuda::reduce {
namespace {

template <class C>
void divide_loop(const C* const* in, C* const* out, int64_t n, const void* divisor) {
  const C *dy = in[0], by = *static_cast<const C*>(divisor);
  C* dx = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] / by;
}

template <class C>
void spread(const TensorView& dy, const TensorView& dx, int64_t divisor) {
  const IterationSpace space = space_of(dx);
  const Operand in[] = {operand(dy, space)}, out[] = {operand(dx, space)};
  const C by = static_cast<C>(divisor);
  run_tiles<C>(space, in, out, &divide_loop<C>, &by);
}
void spread_any(const TensorView& dy, const TensorView& dx, int64_t divisor) {
  dx.element == Element::F64 ? spread<double>(dy, dx, divisor) : spread<float>(dy, dx, divisor);
}

// Every element that equals the extremum gets an equal share. As in torch a NaN extremum equals nothing, so the whole
// slice is 0/0.
template <class C>
void share(const RowMap& dy, const RowMap& x, const RowMap& y, const RowMap& dx) {
  const int64_t length = x.length();
  parallel_for(x.rows(), row_grain(length), [&](int64_t begin, int64_t end) {
    C from[kRowTile<C>], to[kRowTile<C>];
    for (int64_t r = begin; r < end; ++r) {
      const C best = get<C>(y, r), d = get<C>(dy, r);
      const char* in = x.row(r);
      char* out = dx.row(r);
      const C* v = from;
      int64_t equal = 0;
      for (int64_t at = 0; at < length; at += kRowTile<C>) {
        const int64_t n = std::min(kRowTile<C>, length - at);
        v = read(x, in, at, n, from);
        for (int64_t j = 0; j < n; ++j) equal += v[j] == best;
      }
      const C each = d / static_cast<C>(equal), other = equal ? C(0) : C(0) / C(equal);
      for (int64_t at = 0; at < length; at += kRowTile<C>) {
        const int64_t n = std::min(kRowTile<C>, length - at);
        if (length > kRowTile<C>) v = read(x, in, at, n, from);
        C* g = target(dx, out, at, to);
#pragma GCC ivdep
        for (int64_t j = 0; j < n; ++j) g[j] = v[j] == best ? each : other;
        write(dx, out, at, n, g);
      }
    }
  });
}

Status share_any(const Launch& launch) {
  const auto axes = static_cast<uint32_t>(attributes<ReduceAttrs>(launch).axes);
  const TensorView& x = launch[1];
  const RowMap dy = row_map(with_folded(launch[0], x, axes), axes), y = row_map(with_folded(launch[2], x, axes), axes);
  const RowMap in = row_map(x, axes), dx = row_map(launch[3], axes);
  launch.element == Element::F64 ? share<double>(dy, in, y, dx) : share<float>(dy, in, y, dx);
  return Status::Ok;
}

}  // namespace
}  // namespace baracuda::reduce

namespace baracuda {

using namespace reduce;

template <>
Status CpuKernel<Backward<Sum>>::run(const Launch& launch) {
  const auto axes = static_cast<uint32_t>(attributes<ReduceAttrs>(launch).axes);
  spread_any(with_folded(launch[0], launch[1], axes), launch[1], 1);
  return Status::Ok;
}

template <>
Status CpuKernel<Backward<Mean>>::run(const Launch& launch) {
  const auto axes = static_cast<uint32_t>(attributes<ReduceAttrs>(launch).axes);
  spread_any(with_folded(launch[0], launch[1], axes), launch[1], folded_count(launch[1], axes));
  return Status::Ok;
}

template <>
Status CpuKernel<Backward<SumTo>>::run(const Launch& launch) {
  uint32_t axes;
  spread_any(aligned(launch[0], launch[1], &axes), launch[1], 1);
  return Status::Ok;
}

template <>
Status CpuKernel<Backward<Extremum<true>>>::run(const Launch& launch) {
  return share_any(launch);
}
template <>
Status CpuKernel<Backward<Extremum<false>>>::run(const Launch& launch) {
  return share_any(launch);
}

}  // namespace baracuda
