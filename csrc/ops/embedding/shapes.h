// What lookups and their gradients ask of their tensors.
#pragma once
#include "core/shapes.h"
#include "ops/embedding/skus.h"

namespace baracuda::embedding {

inline void padding(Shapes& s, int64_t index, const Shapes::Tensor& weight) {
  const bool within = index >= -1 && (!s.real() || !weight || index < weight.at(0));
  s.attribute(within, "padding_idx", "-1 or a row of the table");
}
inline void forward_shapes(Shapes& s) {
  using Args = EmbeddingArgs;
  const auto ids = s.in(Args::ids, s.aux()).ranks(0, kMaxRank - 1), weight = s.in(Args::weight).ranks(2);
  s.out(Args::y).is(ids.sizes().then(weight.at(1)));
  padding(s, s.attrs<EmbeddingAttrs>().padding_idx, weight);
}
inline void backward_shapes(Shapes& s) {
  using Args = EmbeddingBackwardArgs;
  const EmbeddingBackwardAttrs attrs = s.attrs<EmbeddingBackwardAttrs>();
  s.flag(attrs.accumulate, "accumulate");
  const auto ids = s.in(Args::ids, s.aux()).ranks(0, kMaxRank - 1);
  const auto dweight = (attrs.accumulate ? s.inout(Args::dweight) : s.out(Args::dweight)).ranks(2);
  s.in(Args::dy).is(ids.sizes().then(dweight.at(1)));
  padding(s, attrs.padding_idx, dweight);
}

// The sizes of one result for each bag; asks for the attributes on the way.
inline Sizes bags(Shapes& s, const Shapes::Tensor& ids, const Shapes::Tensor& offsets, int64_t columns, int param) {
  const BagAttrs attrs = s.attrs<BagAttrs>();
  s.attribute(attrs.mode >= kBagSum && attrs.mode <= kBagMax, "mode", "a way to make one of many");
  s.flag(attrs.include_last_offset, "include_last_offset");
  ids.ranks(offsets ? 1 : 2);
  offsets.ranks(1);
  if (!offsets) return {ids.at(0), columns};
  const int64_t count = offsets.at(0) - (attrs.include_last_offset != 0);
  s.want(count >= 0, param, "at least the last offset");
  return {count, columns};
}
inline void weighted(Shapes& s, const Shapes::Tensor& weights) {
  s.attribute(!weights || s.attrs<BagAttrs>().mode == kBagSum, "mode", "a sum where rows are weighted");
}
inline void bag_shapes(Shapes& s) {
  using Args = BagArgs;
  const auto ids = s.in(Args::ids, s.aux()), weight = s.in(Args::weight).ranks(2);
  const auto offsets = s.may_in(Args::offsets, s.aux());
  const Sizes made = bags(s, ids, offsets, weight.at(1), Args::offsets);
  weighted(s, s.may_in(Args::per_sample_weights).is(ids));
  s.out(Args::y).is(made);
  s.may_out(Args::max_indices, Element::I64).when(s.attrs<BagAttrs>().mode == kBagMax).is(made);
  padding(s, s.attrs<BagAttrs>().padding_idx, weight);
}
inline void bag_backward_shapes(Shapes& s) {
  using Args = BagBackwardArgs;
  const auto ids = s.in(Args::ids, s.aux()), dweight = s.out(Args::dweight).ranks(2);
  const auto offsets = s.may_in(Args::offsets, s.aux());
  const Sizes made = bags(s, ids, offsets, dweight.at(1), Args::offsets);
  const auto weights = s.may_in(Args::per_sample_weights).is(ids);
  weighted(s, weights);
  s.in(Args::dy).is(made);
  s.may_in(Args::weight).when(bool(weights)).is(dweight);
  s.may_out(Args::dper_sample_weights).when(bool(weights)).is(ids);
  s.may_in(Args::max_indices, Element::I64).when(s.attrs<BagAttrs>().mode == kBagMax).is(made);
  padding(s, s.attrs<BagAttrs>().padding_idx, dweight);
}

inline ShapeRule shapes_of(const Row& row) {
  const bool back = row.direction == Direction::Backward;
  if (std::string_view(row.op) == "embedding_bag") return back ? bag_backward_shapes : bag_shapes;
  return back ? backward_shapes : forward_shapes;
}

}  // namespace baracuda::embedding
