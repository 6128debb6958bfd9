// Launches the reductions and their gradients on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/reduce/axes.h"
#include "ops/reduce/simt.h"
#include "ops/reduce/skus.h"
#include "simt/fold_launch.h"
#include "simt/map_launch.h"

namespace baracuda::reduce {

// x and y, which has x's dimensions with or without those that `axes` folds, as rows to fold.
inline simt::RowSpace<2> fold_space(const TensorView& x, const TensorView& y, uint32_t axes, bool ordered) {
  const IterationSpace space = space_of(x);
  const TensorView full = with_folded(y, x, axes);
  const Operand all[] = {operand(x, space), operand(full, space)};
  const simt::FoldDims<2> dims(space, axes, all, ordered);
  return simt::row_space(dims.space, dims.inner, dims.tensors);
}

// divisor: negative where nothing is divided.
template <template <class> class Fold>
Status fold_floats(const Launch& launch, const simt::RowSpace<2>& s, int64_t divisor = -1) {
  simt::FoldLaunch<Fold> fold(launch, s, launch.workspace, divisor);
  return simt::with_float(launch.element, [&](auto t) { return fold.template floats<decltype(t)>(); });
}
template <template <class> class Fold>
Status fold_any(const Launch& launch, const simt::RowSpace<2>& s) {
  if (is_float(launch.element)) return fold_floats<Fold>(launch, s);
  simt::FoldLaunch<Fold> fold(launch, s, launch.workspace);
  return kSigned.has(launch.element) ? fold.template integers<int64_t>() : fold.template integers<uint64_t>();
}

inline uint32_t axes_of(const Launch& launch) { return static_cast<uint32_t>(attributes<ReduceAttrs>(launch).axes); }

inline Status spread(const Launch& launch, const TensorView& dy, int64_t divisor) {
  const IterationSpace space = space_of(launch[1]);
  Scalar by;
  by.f = static_cast<double>(divisor);
  const simt::Input in[] = {operand(dy, space), by};
  const Operand out[] = {operand(launch[1], space)};
  return simt::map_floats<Spread>(launch, space, in, out);
}

template <bool kMax>
struct Extreme {
  template <class C>
  using Fold = simt::ExtremeFold<kMax, C>;
  template <class C>
  using Search = simt::SearchFold<kMax, C>;
};

inline Status share(const Launch& launch) {
  const uint32_t axes = axes_of(launch);
  const TensorView& x = launch[1];
  const IterationSpace space = space_of(x);
  const TensorView dy = with_folded(launch[0], x, axes), y = with_folded(launch[2], x, axes);
  const Operand all[] = {operand(dy, space), operand(x, space), operand(y, space), operand(launch[3], space)};
  ShareParams p{simt::row_space(space, axes, all)};
  const auto grid = simt::teams(p.s, 32, 512, 1);
  return simt::with_float(launch.element, [&](auto t) {
    return simt::submit<Share<simt::StridedRows<decltype(t)>>>(launch, {grid.blocks}, grid.threads, p);
  });
}

}  // namespace baracuda::reduce

namespace baracuda {

template <>
struct SimtKernel<reduce::Sum> {
  static Status run(const Launch& launch) {
    const auto s = reduce::fold_space(launch[0], launch[1], reduce::axes_of(launch), false);
    if (is_float(launch.element)) return reduce::fold_floats<simt::SumFold>(launch, s);
    // Integers wrap, whatever their sign.
    return simt::FoldLaunch<simt::SumFold>(launch, s, launch.workspace).integers<uint64_t>();
  }
};

template <>
struct SimtKernel<reduce::Mean> {
  static Status run(const Launch& launch) {
    const auto s = reduce::fold_space(launch[0], launch[1], reduce::axes_of(launch), false);
    return reduce::fold_floats<simt::SumFold>(launch, s, s.length);
  }
};

template <>
struct SimtKernel<reduce::SumTo> {
  static Status run(const Launch& launch) {
    uint32_t axes;
    const TensorView y = reduce::aligned(launch[1], launch[0], &axes);
    return reduce::fold_floats<simt::SumFold>(launch, reduce::fold_space(launch[0], y, axes, false));
  }
};

template <bool kMax>
struct SimtKernel<reduce::Extremum<kMax>> {
  static Status run(const Launch& launch) {
    const auto s = reduce::fold_space(launch[0], launch[1], reduce::axes_of(launch), false);
    if (s.length == 0 && s.rows > 0) return Status::InvalidProblem;
    return reduce::fold_any<reduce::Extreme<kMax>::template Fold>(launch, s);
  }
};

template <bool kMax>
struct SimtKernel<reduce::ArgExtremum<kMax>> {
  static Status run(const Launch& launch) {
    const int64_t axis = attributes<reduce::ArgReduceAttrs>(launch).axis;
    const uint32_t axes = axis < 0 ? (1u << launch[0].rank) - 1u : 1u << axis;
    const auto s = reduce::fold_space(launch[0], launch[1], axes, true);
    if (s.length == 0 && s.rows > 0) return Status::InvalidProblem;
    return reduce::fold_any<reduce::Extreme<kMax>::template Search>(launch, s);
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::Sum>> {
  static Status run(const Launch& launch) {
    return reduce::spread(launch, reduce::with_folded(launch[0], launch[1], reduce::axes_of(launch)), 1);
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::Mean>> {
  static Status run(const Launch& launch) {
    const uint32_t axes = reduce::axes_of(launch);
    const int64_t count = reduce::folded_count(launch[1], axes);
    return reduce::spread(launch, reduce::with_folded(launch[0], launch[1], axes), count);
  }
};

template <>
struct SimtKernel<reduce::Backward<reduce::SumTo>> {
  static Status run(const Launch& launch) {
    uint32_t axes;
    return reduce::spread(launch, reduce::aligned(launch[0], launch[1], &axes), 1);
  }
};

template <bool kMax>
struct SimtKernel<reduce::Backward<reduce::Extremum<kMax>>> {
  static Status run(const Launch& launch) { return reduce::share(launch); }
};

}  // namespace baracuda
