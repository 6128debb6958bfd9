// What softmax and its kin ask of their tensors.
#pragma once
#include "core/shapes.h"
#include "ops/softmax/skus.h"

namespace baracuda::softmax {

inline void forward_shapes(Shapes& s) {
  const auto x = s.in(SoftmaxArgs::x);
  s.out(SoftmaxArgs::y).is(x);
  s.axis(s.attrs<SoftmaxAttrs>().axis, x.rank());
}
inline void scaled_shapes(Shapes& s) {
  const auto x = s.in(ScaledArgs::x);
  s.may_in(ScaledArgs::mask, Element::Bool).fits(x);
  s.out(ScaledArgs::y).is(x);
  s.axis(s.attrs<SoftmaxAttrs>().axis, x.rank());
}
inline void backward_shapes(Shapes& s) {
  using Args = SoftmaxBackwardArgs;  // and of scaled_softmax
  const auto dy = s.in(Args::dy);
  s.in(Args::y).is(dy);
  s.out(Args::dx).is(dy);
  s.axis(s.attrs<SoftmaxAttrs>().axis, dy.rank());
}

inline ShapeRule shapes_of(const Row& row) {
  if (row.direction == Direction::Backward) return backward_shapes;
  return std::string_view(row.op) == "scaled_softmax" ? scaled_shapes : forward_shapes;
}

}  // namespace baracuda::softmax
