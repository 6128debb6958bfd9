// Launches softmax and log_softmax on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/softmax/simt.h"
#include "ops/softmax/simt_sparse.h"
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

template <int... kTensors>
RowParams<sizeof...(kTensors)> params_of(const Launch& launch) {
  const TensorView* of[] = {&launch[kTensors]...};
  const IterationSpace space = space_of(*of[0]);
  const uint32_t mask = space.rank == 0 ? 0 : 1u << attributes<SoftmaxAttrs>(launch).axis;
  const Operand all[] = {operand(launch[kTensors], space)...};
  return {simt::row_space(space, mask, all)};
}
inline auto forward_params(const Launch& launch) { return params_of<SoftmaxArgs::x, SoftmaxArgs::y>(launch); }
// Of scaled ones, too: they have the same tensors.
inline auto backward_params(const Launch& launch) {
  using Args = SoftmaxBackwardArgs;
  return params_of<Args::dy, Args::y, Args::dx>(launch);
}

// A block for each row.
template <int kTensors>
simt::TeamGrid block_rows(const simt::RowSpace<kTensors>& s) {
  const int threads = static_cast<int>(std::clamp<int64_t>((s.length / 4 + 31) / 32 * 32, 32, 512));
  return {s.length == 0 ? 0 : simt::blocks_for(s.rows, 1), threads};
}

}  // namespace baracuda::softmax

namespace baracuda {

template <bool kLog>
struct SimtKernel<softmax::Forward<kLog>> {
  static Status run(const Launch& launch) {
    const auto p = softmax::forward_params(launch);
    return simt::with_float(launch.element, [&](auto t) {
      return softmax::launch_rows<softmax::ForwardCached, softmax::ForwardLooped, kLog, decltype(t)>(launch, p);
    });
  }
};

template <bool kLog>
struct SimtKernel<softmax::Backward<kLog>> {
  static Status run(const Launch& launch) {
    const auto p = softmax::backward_params(launch);
    return simt::with_float(launch.element, [&](auto t) {
      return softmax::launch_rows<softmax::BackwardCached, softmax::BackwardLooped, kLog, decltype(t)>(launch, p);
    });
  }
};

template <bool kSquared>
struct SimtKernel<softmax::SparseForward<kSquared>> {
  static Status run(const Launch& launch) {
    softmax::SparseParams<2> p{softmax::forward_params(launch).s};
    const auto grid = softmax::block_rows(p.s);
    return simt::with_float(launch.element, [&](auto t) {
      using Body = softmax::SparseRows<simt::LineRows<decltype(t)>, kSquared>;
      return simt::submit<Body>(launch, {grid.blocks}, grid.threads, p);
    });
  }
};
template <bool kSquared>
struct SimtKernel<softmax::SparseBackward<kSquared>> {
  static Status run(const Launch& launch) {
    softmax::SparseParams<3> p{softmax::backward_params(launch).s};
    const auto grid = softmax::block_rows(p.s);
    return simt::with_float(launch.element, [&](auto t) {
      using Body = softmax::SparseGradient<simt::LineRows<decltype(t)>, kSquared>;
      return simt::submit<Body>(launch, {grid.blocks}, grid.threads, p);
    });
  }
};

template <>
struct SimtKernel<softmax::ScaledForward> {
  static Status run(const Launch& launch) {
    using Args = softmax::ScaledArgs;
    const TensorView& x = launch[Args::x];
    const IterationSpace space = space_of(x);
    const uint32_t axes = space.rank == 0 ? 0 : 1u << attributes<softmax::SoftmaxAttrs>(launch).axis;
    const Operand all[] = {operand(x, space), operand(launch[Args::y], space),
                           output_operand(launch[Args::mask], space)};
    softmax::ScaledParams p{simt::row_space(space, axes, all), simt::number_of(launch.scalars[Args::scale])};
    const auto grid = simt::teams(p.s, 16, 512);
    return simt::with_float(launch.element, [&](auto t) {
      using Body = softmax::ScaledRows<simt::LineRows<decltype(t)>>;
      return simt::submit<Body>(launch, {grid.blocks}, grid.threads, p);
    });
  }
};

template <>
struct SimtKernel<softmax::ScaledBackward> {
  static Status run(const Launch& launch) {
    const auto scale = simt::number_of(launch.scalars[softmax::ScaledBackwardArgs::scale]);
    softmax::ScaledParams p{softmax::backward_params(launch).s, scale};
    const auto grid = simt::teams(p.s, 16, 512);
    return simt::with_float(launch.element, [&](auto t) {
      using Body = softmax::ScaledGradient<simt::LineRows<decltype(t)>>;
      return simt::submit<Body>(launch, {grid.blocks}, grid.threads, p);
    });
  }
};

}  // namespace baracuda
