// What gated activations ask of their tensors: one that is split in two halves, or a pair.
#pragma once
#include "core/shapes.h"
#include "ops/gated/skus.h"
#include "ops/quant/epilogue_shapes.h"

namespace baracuda::gated {

// The sizes of a half of x.
inline Sizes half_of(Shapes& s, const Shapes::Tensor& x, int param) {
  const int64_t axis = s.attrs<GatedAttrs>().split_dim;
  const int64_t size = axis >= 0 && axis < x.rank() ? x.at(static_cast<int>(axis)) : -1;
  s.attribute(size >= 0, "split_dim", "a dimension of the tensor that is split");
  s.want(!s.real() || size % 2 == 0, param, "an even size in the dimension that is split");
  return x.sizes().with(axis, size / 2);
}
// What is asked of attributes: a pair has no dimension that is split.
inline void check_attributes(Shapes& s, bool joined) {
  const GatedAttrs attrs = s.attrs<GatedAttrs>();
  s.flag(attrs.gate_first, "gate_first");
  s.attribute(joined || attrs.split_dim == 0, "split_dim", "0 for a pair");
}
inline void forward_shapes(Shapes& s) {
  using Args = ForwardArgs;
  const auto x = s.may_in(Args::x), y = s.out(Args::y);
  check_attributes(s, bool(x));
  s.may_in(Args::value).when(!x).is(y);
  s.may_in(Args::gate).when(!x).is(y);
  if (x) y.is(half_of(s, x, Args::x));
}
inline void backward_shapes(Shapes& s) {
  using Args = BackwardArgs;
  const auto x = s.may_in(Args::x), dy = s.in(Args::dy);
  check_attributes(s, bool(x));
  for (const int pair : {Args::value, Args::gate}) s.may_in(pair).when(!x).is(dy);
  for (const int pair : {Args::dvalue, Args::dgate}) s.may_out(pair).when(!x).is(dy);
  s.may_out(Args::dx).when(bool(x)).is(x);
  if (x) dy.is(half_of(s, x, Args::x));
}

inline void coded_shapes(Shapes& s) {
  using Args = CodedArgs;
  const auto x = s.may_in(Args::x);
  check_attributes(s, bool(x));
  const auto value = s.may_in(Args::value).when(!x), gate = s.may_in(Args::gate).when(!x);
  gate.is(value);
  quant::coded_shapes<Args>(s, x ? half_of(s, x, Args::x) : value.sizes(), s.attrs<CodedAttrs>().group);
}

inline ShapeRule shapes_of(const Row& row) {
  if (std::string_view(row.op).ends_with("_quantize")) return coded_shapes;
  return row.direction == Direction::Forward ? forward_shapes : backward_shapes;
}

}  // namespace baracuda::gated
