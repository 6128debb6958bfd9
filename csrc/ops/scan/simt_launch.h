// Launches scans on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/scan/flip.h"
#include "ops/scan/simt.h"
#include "ops/scan/simt_folds.h"
#include "ops/scan/skus.h"
#include "simt/rows_launch.h"

namespace baracuda::scan {

template <bool kProduct, class C>
Status run(const Launch& launch, const simt::RowSpace<2>& s) {
  const ScanParams p{s};
  if (simt::side_by_side(s)) return simt::submit<Columns<kProduct, C>>(launch, {simt::blocks_for(s.rows, 128)}, 128, p);
  return simt::submit<Lines<kProduct, C>>(launch, {simt::blocks_for(s.rows, 1)}, 256, p);
}

template <bool kProduct>
Status run_any(const Launch& launch, const TensorView& x, const TensorView& y, int64_t axis) {
  const IterationSpace space = space_of(x);
  const Operand all[] = {operand(x, space), operand(y, space)};
  const auto s = simt::row_space(space, x.rank == 0 ? 0 : 1u << axis, all);
  if (s.rows == 0 || s.length == 0) return Status::Ok;
#if BCU_HAS_F64
  if (x.element == Element::F64) return run<kProduct, double>(launch, s);
#endif
  if (is_float(x.element)) return run<kProduct, float>(launch, s);
  return run<kProduct, uint64_t>(launch, s);  // integers wrap, whatever their sign
}

template <class Fold>
Status run_fold(const Launch& launch, const typename Fold::Params& p) {
  if (p.s.rows == 0 || p.s.length == 0) return Status::Ok;
  if (simt::side_by_side(p.s))
    return simt::submit<FoldColumns<Fold>>(launch, {simt::blocks_for(p.s.rows, 128)}, 128, p);
  return simt::submit<FoldLines<Fold>>(launch, {simt::blocks_for(p.s.rows, 1)}, 256, p);
}
template <size_t kTensors>
simt::RowSpace<kTensors> lines_of(const TensorView (&tensors)[kTensors], int64_t axis) {
  const IterationSpace space = space_of(tensors[0]);
  Operand all[kTensors];
  for (size_t k = 0; k < kTensors; ++k) all[k] = operand(tensors[k], space);
  return simt::row_space(space, space.rank == 0 ? 0 : 1u << axis, all);
}

template <bool kMax>
Status extremes(const Launch& launch) {
  using Args = ExtremeArgs;
  const TensorView all[] = {launch[Args::x], launch[Args::values], launch[Args::indices]};
  const FoldParams<3> p{lines_of(all, attributes<ScanAttrs>(launch).axis)};
  const Element e = all[0].element;
#if BCU_HAS_F64
  if (e == Element::F64) return run_fold<ExtremeFold<kMax, double>>(launch, p);
#endif
  if (is_float(e)) return run_fold<ExtremeFold<kMax, float>>(launch, p);
  if (kSigned.has(e)) return run_fold<ExtremeFold<kMax, int64_t>>(launch, p);
  return run_fold<ExtremeFold<kMax, uint64_t>>(launch, p);
}
template <template <class> class Fold, size_t kTensors>
Status run_floats(const Launch& launch, const TensorView (&all)[kTensors], int64_t axis) {
  const FoldParams<kTensors> p{lines_of(all, axis)};
#if BCU_HAS_F64
  if (launch.element == Element::F64) return run_fold<Fold<double>>(launch, p);
#endif
  return run_fold<Fold<float>>(launch, p);
}

}  // namespace baracuda::scan

namespace baracuda {

template <bool kProduct>
struct SimtKernel<scan::Running<kProduct>> {
  static Status run(const Launch& launch) {
    using Args = scan::ScanArgs;
    const int64_t axis = attributes<scan::ScanAttrs>(launch).axis;
    return scan::run_any<kProduct>(launch, launch[Args::x], launch[Args::y], axis);
  }
};

template <>
struct SimtKernel<scan::Backward<scan::Running<false>>> {
  static Status run(const Launch& launch) {
    using Args = scan::SumBackwardArgs;
    const int64_t axis = attributes<scan::ScanAttrs>(launch).axis;
    const TensorView dy = scan::flipped(launch[Args::dy], axis), dx = scan::flipped(launch[Args::dx], axis);
    return scan::run_any<false>(launch, dy, dx, axis);
  }
};

template <>
struct SimtKernel<scan::Backward<scan::Running<true>>> {
  static Status run(const Launch& launch) {
    using Args = scan::ResultBackwardArgs;
    const IterationSpace space = space_of(launch[Args::x]);
    const Operand all[] = {operand(launch[Args::dy], space), operand(launch[Args::x], space),
                           operand(launch[Args::y], space), operand(launch[Args::dx], space)};
    const uint32_t axes = space.rank == 0 ? 0 : 1u << attributes<scan::ScanAttrs>(launch).axis;
    const scan::ProductGradientParams p{simt::row_space(space, axes, all)};
    if (p.s.rows == 0 || p.s.length == 0) return Status::Ok;
    const simt::Grid grid{simt::blocks_for(p.s.rows, 128)};
#if BCU_HAS_F64
    if (launch.element == Element::F64) return simt::submit<scan::ProductGradient<double>>(launch, grid, 128, p);
#endif
    return simt::submit<scan::ProductGradient<float>>(launch, grid, 128, p);
  }
};

template <bool kMax>
struct SimtKernel<scan::RunningExtreme<kMax>> {
  static Status run(const Launch& launch) { return scan::extremes<kMax>(launch); }
};

template <>
struct SimtKernel<scan::LogSumExp> {
  static Status run(const Launch& launch) {
    const TensorView all[] = {launch[scan::ScanArgs::x], launch[scan::ScanArgs::y]};
    return scan::run_floats<scan::LogSumFold>(launch, all, attributes<scan::ScanAttrs>(launch).axis);
  }
};

template <>
struct SimtKernel<scan::Backward<scan::LogSumExp>> {
  static Status run(const Launch& launch) {
    using Args = scan::ResultBackwardArgs;
    const int64_t axis = attributes<scan::ScanAttrs>(launch).axis;
    const auto back = [&](int param) { return scan::flipped(launch[param], axis); };
    const TensorView all[] = {back(Args::dy), back(Args::x), back(Args::y), back(Args::dx)};
    return scan::run_floats<scan::LogSumGradientFold>(launch, all, axis);
  }
};

}  // namespace baracuda
