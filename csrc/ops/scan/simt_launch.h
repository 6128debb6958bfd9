// Launches running sums and products on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/scan/flip.h"
#include "ops/scan/simt.h"
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
    using Args = scan::ProductBackwardArgs;
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

}  // namespace baracuda
