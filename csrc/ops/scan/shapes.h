// What scans ask of their tensors.
#pragma once
#include "core/shapes.h"
#include "ops/scan/skus.h"

namespace baracuda::scan {

inline void forward_shapes(Shapes& s) {
  const auto x = s.in(ScanArgs::x);
  s.out(ScanArgs::y, s.whole_or(Element::I64)).is(x);
  s.axis(s.attrs<ScanAttrs>().axis, x.rank());
}
inline void sum_backward_shapes(Shapes& s) {
  const auto dy = s.in(SumBackwardArgs::dy);
  s.out(SumBackwardArgs::dx).is(dy);
  s.axis(s.attrs<ScanAttrs>().axis, dy.rank());
}
inline void result_backward_shapes(Shapes& s) {
  using Args = ResultBackwardArgs;
  const auto dy = s.in(Args::dy);
  s.in(Args::x).is(dy);
  s.in(Args::y).is(dy);
  s.out(Args::dx).is(dy);
  s.axis(s.attrs<ScanAttrs>().axis, dy.rank());
}

inline void extreme_shapes(Shapes& s) {
  const auto x = s.in(ExtremeArgs::x);
  s.out(ExtremeArgs::values).is(x);
  s.out(ExtremeArgs::indices, Element::I64).is(x);
  s.axis(s.attrs<ScanAttrs>().axis, x.rank());
}

inline ShapeRule shapes_of(const Row& row) {
  const std::string_view op = row.op;
  if (op == "cummax" || op == "cummin") return extreme_shapes;
  if (row.direction == Direction::Forward) return forward_shapes;
  return op == "cumsum" ? sum_backward_shapes : result_backward_shapes;
}

}  // namespace baracuda::scan
