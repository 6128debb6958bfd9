// What running sums and products ask of their tensors.
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
inline void product_backward_shapes(Shapes& s) {
  using Args = ProductBackwardArgs;
  const auto dy = s.in(Args::dy);
  s.in(Args::x).is(dy);
  s.in(Args::y).is(dy);
  s.out(Args::dx).is(dy);
  s.axis(s.attrs<ScanAttrs>().axis, dy.rank());
}

inline ShapeRule shapes_of(const Row& row) {
  if (row.direction == Direction::Forward) return forward_shapes;
  return std::string_view(row.op) == "cumprod" ? product_backward_shapes : sum_backward_shapes;
}

}  // namespace baracuda::scan
