// What reductions and their gradients ask of their tensors.
#pragma once
#include <cmath>

#include "core/shapes.h"
#include "ops/reduce/skus.h"

namespace baracuda::reduce {

// The sizes of a result over some axes, and over one or all of them.
inline Sizes over_axes(Shapes& s, const Sizes& x) {
  const ReduceAttrs attrs = s.attrs<ReduceAttrs>();
  s.flag(attrs.keepdim, "keepdim");
  return s.axes(attrs.axes, x.rank) ? x.reduced(static_cast<uint64_t>(attrs.axes), attrs.keepdim != 0) : x;
}
inline Sizes over_axis(Shapes& s, const Sizes& x, bool all) {
  const ArgReduceAttrs attrs = s.attrs<ArgReduceAttrs>();
  s.flag(attrs.keepdim, "keepdim");
  const bool there = attrs.axis < x.rank && (attrs.axis >= 0 || (attrs.axis == -1 && (all || x.rank == 0)));
  if (!s.attribute(there, "axis", "an axis of the tensor, or -1 for all where the op takes that")) return x;
  return x.reduced(attrs.axis < 0 ? ~uint64_t{0} : uint64_t{1} << attrs.axis, attrs.keepdim != 0);
}

// Of what is folded into one tensor; kWhole: what becomes of integers.
template <Element kWhole>
void folded_shapes(Shapes& s) {
  const auto x = s.in(ReduceArgs::x);
  s.out(ReduceArgs::y, kWhole == Element::Any ? s.element() : s.whole_or(kWhole)).is(over_axes(s, x));
}
inline void count_shapes(Shapes& s) {
  const auto x = s.in(ReduceArgs::x);
  s.out(ReduceArgs::y, Element::I64).is(over_axes(s, x));
}
inline void truth_shapes(Shapes& s) {
  const auto x = s.in(ReduceArgs::x);
  s.out(ReduceArgs::y, s.element() == Element::U8 ? Element::U8 : Element::Bool).is(over_axes(s, x));
}
inline void norm_shapes(Shapes& s) {
  folded_shapes<Element::Any>(s);
  s.attribute(!std::isnan(s.attrs<NormAttrs>().p), "p", "a number");
}
inline void position_shapes(Shapes& s) {
  const auto x = s.in(ReduceArgs::x);
  s.out(ReduceArgs::y, s.aux()).is(over_axis(s, x, true));
}
inline void indexed_shapes(Shapes& s) {
  const auto x = s.in(IndexedArgs::x);
  const Sizes made = over_axis(s, x, false);
  s.out(IndexedArgs::values).is(made);
  s.out(IndexedArgs::indices, s.aux()).is(made);
}
// Two results: var_mean, std_mean and aminmax name them each in their own way.
inline void paired_shapes(Shapes& s) {
  const auto x = s.in(MinMaxArgs::x);
  const Sizes made = over_axes(s, x);
  for (const int result : {MinMaxArgs::min, MinMaxArgs::max}) s.out(result).is(made);
}
inline void sum_to_shapes(Shapes& s) { s.out(ReduceArgs::y).fits(s.in(ReduceArgs::x)); }
inline void trace_shapes(Shapes& s) {
  s.in(ReduceArgs::x).ranks(2);
  s.out(ReduceArgs::y, s.whole_or(Element::I64)).ranks(0);
}
inline void cosine_shapes(Shapes& s) {
  using Args = CosineArgs;
  const auto x1 = s.in(Args::x1), x2 = s.in(Args::x2);
  const Sizes full = s.joined(x1, x2);
  const int64_t axis = s.attrs<CosineAttrs>().axis;
  s.want(full.rank > 0, Args::x1, "at least one dimension");
  s.axis(axis, full.rank);
  s.out(Args::y).is(full.without(axis));
}

// Gradients.
inline void spread_shapes(Shapes& s) {
  const auto dx = s.out(SpreadArgs::dx);
  s.in(SpreadArgs::dy).is(over_axes(s, dx));
}
inline void sum_to_backward_shapes(Shapes& s) { s.in(SpreadArgs::dy).fits(s.out(SpreadArgs::dx)); }
inline void trace_backward_shapes(Shapes& s) {
  s.in(SpreadArgs::dy).ranks(0);
  s.out(SpreadArgs::dx).ranks(2);
}
inline void select_shapes(Shapes& s) {
  const auto x = s.in(SelectArgs::x);
  s.in(SelectArgs::dy).is(over_axes(s, x));
  s.out(SelectArgs::dx).is(x);
}
inline void result_shapes(Shapes& s) {
  const auto x = s.in(ResultArgs::x);
  const Sizes made = over_axes(s, x);
  for (const int result : {ResultArgs::dy, ResultArgs::y}) s.in(result).is(made);
  s.out(ResultArgs::dx).is(x);
}
inline void norm_backward_shapes(Shapes& s) {
  result_shapes(s);
  s.attribute(!std::isnan(s.attrs<NormAttrs>().p), "p", "a number");
}
inline void var_mean_backward_shapes(Shapes& s) {
  using Args = VarMeanBackwardArgs;
  const auto x = s.in(Args::x);
  const Sizes made = over_axes(s, x);
  for (const int result : {Args::dvar, Args::dmean}) s.in(result).is(made);
  s.out(Args::dx).is(x);
}
inline void std_mean_backward_shapes(Shapes& s) {
  using Args = StdMeanBackwardArgs;
  const auto x = s.in(Args::x);
  const Sizes made = over_axes(s, x);
  for (const int result : {Args::dstd, Args::dmean, Args::std}) s.in(result).is(made);
  s.out(Args::dx).is(x);
}
inline void minmax_backward_shapes(Shapes& s) {
  using Args = MinMaxBackwardArgs;
  const auto x = s.in(Args::x);
  const Sizes made = over_axes(s, x);
  for (const int result : {Args::dmin, Args::dmax, Args::min, Args::max}) s.in(result).is(made);
  s.out(Args::dx).is(x);
}
inline void indexed_backward_shapes(Shapes& s) {
  using Args = IndexedBackwardArgs;
  const auto dx = s.out(Args::dx);
  const Sizes made = over_axis(s, dx, false);
  s.in(Args::dvalues).is(made);
  s.in(Args::indices, s.aux()).is(made);
}
inline void cosine_backward_shapes(Shapes& s) {
  using Args = CosineBackwardArgs;
  const auto x1 = s.in(Args::x1).ranks(1, kMaxRank);
  const int64_t axis = s.attrs<CosineAttrs>().axis;
  s.in(Args::x2).is(x1);
  s.axis(axis, x1.rank());
  s.in(Args::dy).is(x1.sizes().without(axis));
  for (const int gradient : {Args::dx1, Args::dx2}) s.out(gradient).is(x1);
}

inline ShapeRule gradient_shapes_of(std::string_view op) {
  if (op == "sum" || op == "mean") return spread_shapes;
  if (op == "nansum" || op == "nanmean" || op == "var") return select_shapes;
  if (op == "max" || op == "min") return indexed_backward_shapes;
  return op == "sum_to"              ? sum_to_backward_shapes
         : op == "trace"             ? trace_backward_shapes
         : op == "norm"              ? norm_backward_shapes
         : op == "var_mean"          ? var_mean_backward_shapes
         : op == "std_mean"          ? std_mean_backward_shapes
         : op == "aminmax"           ? minmax_backward_shapes
         : op == "cosine_similarity" ? cosine_backward_shapes
                                     : result_shapes;
}
inline ShapeRule shapes_of(const Row& row) {
  const std::string_view op = row.op;
  if (row.direction == Direction::Backward) return gradient_shapes_of(op);
  if (op == "any" || op == "all") return truth_shapes;
  if (op == "sum" || op == "prod") return folded_shapes<Element::I64>;
  if (op == "argmax" || op == "argmin") return position_shapes;
  if (op == "max" || op == "min") return indexed_shapes;
  if (op == "aminmax" || op == "var_mean" || op == "std_mean") return paired_shapes;
  return op == "count_nonzero"       ? count_shapes
         : op == "norm"              ? norm_shapes
         : op == "sum_to"            ? sum_to_shapes
         : op == "trace"             ? trace_shapes
         : op == "cosine_similarity" ? cosine_shapes
                                     : folded_shapes<Element::Any>;
}

}  // namespace baracuda::reduce
