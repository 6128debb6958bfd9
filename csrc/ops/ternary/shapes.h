// What functions of three operands and their gradients ask of their tensors, which broadcast.
#pragma once
#include "core/shapes.h"
#include "ops/ternary/skus.h"

namespace baracuda::ternary {

inline void where_shapes(Shapes& s) {
  using Args = WhereArgs;
  const auto condition = s.in(Args::condition, Element::Bool), a = s.may_read(Args::a), b = s.may_read(Args::b);
  s.out(Args::y).is(s.joined(condition, a, b));
}
inline void where_backward_shapes(Shapes& s) {
  using Args = WhereBackwardArgs;
  const auto dy = s.in(Args::dy);
  s.in(Args::condition, Element::Bool).fits(dy);
  const auto da = s.may_out(Args::da).is(dy), db = s.may_out(Args::db).is(dy);
  s.want(da || db, Args::da, "one of the gradients");
}
inline void clamp_flags(Shapes& s) {
  const ClampAttrs attrs = s.attrs<ClampAttrs>();
  s.flag(attrs.has_min, "has_min");
  s.flag(attrs.has_max, "has_max");
  s.attribute(attrs.has_min || attrs.has_max, "has_min", "at least one bound");
}
inline void clamp_shapes(Shapes& s) {
  clamp_flags(s);
  const auto x = s.reads(ClampArgs::x);
  s.out(ClampArgs::y).is(x);
}
inline void clamp_backward_shapes(Shapes& s) {
  using Args = ClampBackwardArgs;
  clamp_flags(s);
  const auto dy = s.in(Args::dy);
  s.in(Args::x).is(dy);
  s.out(Args::dx).is(dy);
}
inline void forward_shapes(Shapes& s) {
  using Args = OperandArgs;
  const auto a = s.reads(Args::a), b = s.may_read(Args::b), c = s.may_read(Args::c);
  s.out(Args::y).is(s.joined(a, b, c));
}
inline void backward_shapes(Shapes& s) {
  using Args = OperandBackwardArgs;
  const auto a = s.reads(Args::a), b = s.may_read(Args::b), c = s.may_read(Args::c);
  const Sizes full = s.joined(a, b, c);
  s.in(Args::dy).is(full);
  s.out(Args::da).is(full);
  s.may_out(Args::db).when(bool(b)).is(full);
  s.may_out(Args::dc).when(bool(c)).is(full);
}

inline ShapeRule shapes_of(const Row& row) {
  const std::string_view op = row.op;
  const bool back = row.direction == Direction::Backward;
  if (op == "where") return back ? where_backward_shapes : where_shapes;
  if (op == "clamp") return back ? clamp_backward_shapes : clamp_shapes;
  return back ? backward_shapes : forward_shapes;
}

}  // namespace baracuda::ternary
