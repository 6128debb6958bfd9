// Launches softmax and log_softmax on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/softmax/simt.h"
#include "ops/softmax/skus.h"
#include "simt/rows_launch.h"

namespace baracuda::softmax {

template <template <class, bool> class Cached, template <class, bool> class Looped, bool kLog, class T, int kTensors>
Status launch_rows(const Launch& launch, RowParams<kTensors> p) {
  auto& s = p.s;
  if constexpr (sizeof(T) < 8) {  // f64 has no packed kernels: few call it
    using Registers = Cached<simt::PackedRows<T>, kLog>;
    using Packed = Looped<simt::PackedRows<T>, kLog>;
    if (!simt::side_by_side(s) && simt::packed_rows<T>(s, ~0u)) {
      const bool fits = s.length <= int64_t{Registers::kThreads} * Registers::kValues;
      const auto grid = simt::row_teams(s, Registers::kValues, Registers::kThreads);
      return fits ? simt::submit<Registers>(launch, {grid.blocks}, grid.threads, p)
                  : simt::submit<Packed>(launch, {grid.blocks}, grid.threads, p);
    }
  }
  const auto grid = simt::teams(s, 16, 512);
  return simt::submit<Looped<simt::LineRows<T>, kLog>>(launch, {grid.blocks}, grid.threads, p);
}

template <int kTensors>
RowParams<kTensors> params_of(const Launch& launch) {
  const IterationSpace space = space_of(launch[0]);
  const uint32_t mask = space.rank == 0 ? 0 : 1u << attributes<SoftmaxAttrs>(launch).axis;
  Operand all[kTensors];
  for (int k = 0; k < kTensors; ++k) all[k] = operand(launch[k], space);
  return {simt::row_space(space, mask, all)};
}

}  // namespace baracuda::softmax

namespace baracuda {

template <bool kLog>
struct SimtKernel<softmax::Forward<kLog>> {
  static Status run(const Launch& launch) {
    const auto p = softmax::params_of<2>(launch);
    return simt::with_float(launch.element, [&](auto t) {
      return softmax::launch_rows<softmax::ForwardCached, softmax::ForwardLooped, kLog, decltype(t)>(launch, p);
    });
  }
};

template <bool kLog>
struct SimtKernel<softmax::Backward<kLog>> {
  static Status run(const Launch& launch) {
    const auto p = softmax::params_of<3>(launch);
    return simt::with_float(launch.element, [&](auto t) {
      return softmax::launch_rows<softmax::BackwardCached, softmax::BackwardLooped, kLog, decltype(t)>(launch, p);
    });
  }
};

}  // namespace baracuda
