// What reading and writing by index ask of their tensors.
#pragma once
#include "core/shapes.h"
#include "ops/indexing/skus.h"

namespace baracuda::indexing {

using Tensor = Shapes::Tensor;

// An index per element: but for the axis no larger than the tensor.
inline void by_element(Shapes& s, const Tensor& x, const Tensor& index, int param, int64_t axis) {
  s.axis(axis, x.rank());
  index.ranks(x.rank());
  for (int d = 0; d < x.rank(); ++d)
    s.want(d == axis || index.at(d) <= x.at(d), param, "sizes within the tensor's, but for the axis");
}
// A vector of indices: the sizes of the slices that it means.
inline Sizes by_axis(Shapes& s, const Tensor& x, const Tensor& index, int param, int64_t axis) {
  s.axis(axis, x.rank());
  index.ranks(0, 1);
  const int64_t count = index.rank() == 1 ? index.at(0) : 1;
  if (x.rank() > 0) return x.sizes().with(axis, count);
  s.want(count == 1, param, "one index of a tensor of rank 0");
  return {};
}
// The sizes of what is read of x.
template <By kBy>
Sizes collected(Shapes& s, const Tensor& x, const Tensor& index, int param) {
  const int64_t axis = s.attrs<CollectAttrs>().axis;
  s.flag(s.attrs<CollectAttrs>().wrap, "wrap");
  if (kBy == By::Axis) return by_axis(s, x, index, param, axis);
  if (kBy == By::Element) by_element(s, x, index, param, axis);
  if (kBy == By::Flat) s.attribute(axis == 0 && s.attrs<CollectAttrs>().wrap == 1, "axis", "0, with wrap 1");
  return index;
}
template <By kBy>
void collect_shapes(Shapes& s) {
  using Args = CollectArgs;
  const auto x = s.in(Args::x), index = s.in(Args::index, s.aux());
  s.out(Args::y).is(collected<kBy>(s, x, index, Args::index));
}
template <By kBy>
void collect_backward_shapes(Shapes& s) {
  using Args = CollectBackwardArgs;
  const auto dx = s.out(Args::dx), index = s.in(Args::index, s.aux());
  s.in(Args::dy).is(collected<kBy>(s, dx, index, Args::index));
}

// kFrom .. kTo: the folds that the op has.
template <By kBy, Fold kFrom, Fold kTo, bool kOptional = false>
void spread_shapes(Shapes& s) {
  using Args = SpreadArgs;  // and of scatter and index_add
  const SpreadAttrs attrs = s.attrs<SpreadAttrs>();
  s.attribute(attrs.wrap == 0, "wrap", "0");
  s.attribute(attrs.include_self == 1 || (kTo == kMin && attrs.include_self == 0), "include_self",
              "1, or 0 where scatter_reduce leaves the tensor's own elements out");
  const auto x = s.in(Args::x), index = s.in(Args::index, s.aux());
  const auto source = kOptional ? s.may_in(Args::source) : s.in(Args::source);
  s.out(Args::y).is(x);
  if (kBy == By::Element) by_element(s, x, index, Args::index, attrs.axis);
  source.is(kBy == By::Element ? index.sizes() : by_axis(s, x, index, Args::index, attrs.axis));
  s.attribute(attrs.mode >= kFrom && attrs.mode <= kTo, "mode", "a fold of this op");
  s.attribute(attrs.mode != kMean || s.element() != Element::Bool, "mode", "another one for bool");
}
inline void fill_shapes(Shapes& s) {
  using Args = FillArgs;
  const auto x = s.in(Args::x);
  s.in(Args::index, s.aux()).ranks(0, 1);
  s.out(Args::y).is(x);
  const SpreadAttrs attrs = s.attrs<SpreadAttrs>();
  s.axis(attrs.axis, x.rank());
  s.attribute(attrs.mode == kAssign && attrs.wrap == 1 && attrs.include_self == 1, "mode",
              "0, with wrap and include_self 1");
}
inline void nonzero_shapes(Shapes& s) {
  using Args = NonzeroArgs;
  const auto x = s.in(Args::x), y = s.out(Args::y, Element::I64).ranks(2);
  y.is({y.at(0), x.rank()});
  s.out(Args::count, Element::I64).ranks(0);
}
inline void masked_shapes(Shapes& s) {
  using Args = MaskedSelectArgs;
  const auto x = s.in(Args::x);
  s.in(Args::mask, Element::Bool).is(x);
  s.out(Args::y).ranks(1);
  s.out(Args::count, Element::I64).ranks(0);
}
inline void one_hot_shapes(Shapes& s) {
  using Args = OneHotArgs;
  const auto index = s.in(Args::index, s.aux()).ranks(0, kMaxRank - 1), y = s.out(Args::y).ranks(1, kMaxRank);
  y.is(index.sizes().then(y.at(-1)));
}

inline void bincount_shapes(Shapes& s) {
  s.in(BincountArgs::index, s.aux());
  s.out(BincountArgs::y).ranks(1);
  s.out(BincountArgs::size, Element::I64).ranks(0);
}
inline void histc_shapes(Shapes& s) {
  s.in(HistcArgs::x);
  s.out(HistcArgs::y).ranks(1);
}

inline ShapeRule shapes_of(const Row& row) {
  const std::string_view op = row.op;
  const bool back = row.direction == Direction::Backward;
  if (op == "gather") return back ? collect_backward_shapes<By::Element> : collect_shapes<By::Element>;
  if (op == "index_select") return back ? collect_backward_shapes<By::Axis> : collect_shapes<By::Axis>;
  if (op == "take") return back ? collect_backward_shapes<By::Flat> : collect_shapes<By::Flat>;
  if (op == "scatter") return spread_shapes<By::Element, kAssign, kAssign, true>;
  if (op == "scatter_reduce") return spread_shapes<By::Element, kSum, kMin>;
  if (op == "index_copy") return spread_shapes<By::Axis, kAssign, kAssign>;
  if (op == "index_add") return spread_shapes<By::Axis, kSum, kSum>;
  return op == "index_fill"      ? fill_shapes
         : op == "nonzero"       ? nonzero_shapes
         : op == "masked_select" ? masked_shapes
         : op == "one_hot"       ? one_hot_shapes
         : op == "bincount"      ? bincount_shapes
         : op == "histc"         ? histc_shapes
                                 : nullptr;
}

}  // namespace baracuda::indexing
