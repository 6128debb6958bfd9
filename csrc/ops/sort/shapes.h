// What sorting asks of its tensors.
#pragma once
#include <string_view>

#include "core/shapes.h"
#include "ops/sort/skus.h"

namespace baracuda::sort {

inline void sort_shapes(Shapes& s) {
  const auto x = s.in(SortArgs::x);
  s.out(SortArgs::values).is(x);
  s.out(SortArgs::indices, Element::I64).is(x);
  const SortAttrs attrs = s.attrs<SortAttrs>();
  s.axis(attrs.axis, x.rank());
  s.flag(attrs.descending, "descending");
}

inline void topk_shapes(Shapes& s) {
  const auto x = s.in(SortArgs::x), values = s.out(SortArgs::values);
  const TopkAttrs attrs = s.attrs<TopkAttrs>();
  s.flag(attrs.largest, "largest");
  if (!s.axis(attrs.axis, x.rank())) return;
  const int axis = static_cast<int>(attrs.axis);
  if (x.rank() > 0)
    s.want(!s.real() || values.at(axis) <= x.at(axis), SortArgs::values, "no more values than the axis has");
  values.is(x.sizes().with(axis, values.at(axis)));
  s.out(SortArgs::indices, Element::I64).is(values);
}
template <bool kKth>
void rank_shapes(Shapes& s) {
  const auto x = s.in(SortArgs::x);
  const RankAttrs attrs = s.attrs<RankAttrs>();
  s.flag(attrs.keepdim, "keepdim");
  if (!s.axis(attrs.axis, x.rank())) return;
  const int64_t length = x.rank() == 0 ? 1 : x.at(static_cast<int>(attrs.axis));
  if (kKth)
    s.attribute(attrs.k > 0 && (!s.real() || attrs.k <= length), "k", "a place along the axis, from 1 on");
  else
    s.attribute(attrs.k == 0, "k", "0: the middle is wanted");
  const Sizes made = x.sizes().reduced(uint64_t{1} << attrs.axis, attrs.keepdim != 0);
  s.out(SortArgs::values).is(made);
  s.out(SortArgs::indices, Element::I64).is(made);
}
inline void search_shapes(Shapes& s) {
  const auto sequence = s.in(SearchArgs::sequence).ranks(1, kMaxRank), values = s.in(SearchArgs::values);
  if (sequence.rank() > 1) {
    s.want(values.rank() == sequence.rank(), SearchArgs::values, "the rank of the sequences");
    s.want(values.sizes().lead(1) == sequence.sizes().lead(1), SearchArgs::values, "a row for each sequence");
  }
  s.out(SearchArgs::y, s.aux()).is(values);
  s.flag(s.attrs<SearchAttrs>().right, "right");
}
inline void unique_shapes(Shapes& s) {
  using Args = UniqueArgs;
  const auto x = s.in(Args::x).ranks(1), values = s.out(Args::values).ranks(1);
  s.may_out(Args::indices, Element::I64).is(values);
  s.may_out(Args::inverse, Element::I64).is(x);
  s.may_out(Args::counts, Element::I64).is(values);
  s.out(Args::count, Element::I64).ranks(0);
}

inline ShapeRule shapes_of(const Row& row) {
  const std::string_view op = row.op;
  if (op == "sort") return sort_shapes;
  if (op == "topk") return topk_shapes;
  if (op == "searchsorted") return search_shapes;
  if (op == "unique" || op == "unique_consecutive") return unique_shapes;
  return op == "kthvalue" ? rank_shapes<true> : rank_shapes<false>;
}

}  // namespace baracuda::sort
