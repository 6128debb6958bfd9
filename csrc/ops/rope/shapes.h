// What rotary position embeddings ask of their tensors.
#pragma once
#include "core/shapes.h"
#include "ops/rope/skus.h"

namespace baracuda::rope {

// The tables, and where each row of x stands.
template <class Attrs>
void tables(Shapes& s, const Sizes& x, int cos, int sin, int positions) {
  const int64_t rotary = s.attrs<Attrs>().rotary_dim;
  s.flag(s.attrs<Attrs>().interleaved, "interleaved");
  s.attribute(x.rank >= 2 && rotary >= 0 && rotary % 2 == 0 && rotary <= x.at(-1), "rotary_dim",
              "an even number of at most the last dimension");
  const auto first = s.in(cos, kFloats).ranks(2), second = s.in(sin, kFloats);
  first.is({first.at(0), rotary / 2});
  second.is(first);
  s.want(first.element() == second.element(), sin, "the element of cos");
  const auto at = s.may_in(positions, Element::I64 | Element::I32).ranks(1, 2);
  const bool each = at.rank() == 2;
  s.want(!at || !each || x.rank > 2, positions, "one position for each row of the sequence");
  at.is(each ? Sizes{x.at(0), x.at(-2)} : Sizes{x.at(-2)});
}
template <class Args, int kFrom, int kTo>
void rotated_shapes(Shapes& s) {
  const auto x = s.in(kFrom).ranks(2, kMaxRank);
  tables<RopeAttrs>(s, x, Args::cos, Args::sin, Args::positions);
  s.out(kTo).is(x);
}
inline void append_shapes(Shapes& s) {
  using Args = RopeAppendArgs;
  const auto q = s.inout(Args::q).ranks(4), k = s.in(Args::k).ranks(4), v = s.in(Args::v).ranks(4);
  tables<RopeAttrs>(s, q, Args::cos, Args::sin, Args::positions);
  k.is(q.sizes().with(1, k.at(1)));
  v.is(k.sizes().with(3, v.at(3)));
  const auto cache = s.inout(Args::k_cache).ranks(4);
  cache.is(k.sizes().with(2, cache.at(2)));
  s.inout(Args::v_cache).is(v.sizes().with(2, cache.at(2)));
}
inline void table_shapes(Shapes& s) {
  const auto cos = s.out(RopeTableArgs::cos).ranks(2);
  s.out(RopeTableArgs::sin).is(cos);
}

// The sizes that kernels keep, and the weights; returns these.
inline Shapes::Tensor weights(Shapes& s, const Shapes::Tensor& x, int param, int weight) {
  s.want(x.at(-1) <= kMostColumns, param, "a last dimension that the kernels keep");
  const auto found = s.may_in(weight).is(x.sizes().tail(1));
  s.attribute(found || s.attrs<NormRopeAttrs>().weight_offset == 0, "weight_offset", "0 without a weight");
  return found;
}
inline void norm_shapes(Shapes& s) {
  using Args = NormRopeArgs;
  const auto x = s.in(Args::x).ranks(2, kMaxRank);
  weights(s, x, Args::x, Args::weight);
  tables<NormRopeAttrs>(s, x, Args::cos, Args::sin, Args::positions);
  s.out(Args::y).is(x);
  s.may_out(Args::rstd, s.wide()).is(x.sizes().lead(1).then(1));
}
inline void norm_backward_shapes(Shapes& s) {
  using Args = NormRopeBackwardArgs;
  const auto x = s.in(Args::x).ranks(2, kMaxRank);
  const auto weight = weights(s, x, Args::x, Args::weight);
  tables<NormRopeAttrs>(s, x, Args::cos, Args::sin, Args::positions);
  s.in(Args::dy).is(x);
  s.in(Args::rstd, s.wide()).is(x.sizes().lead(1).then(1));
  s.out(Args::dx).is(x);
  s.may_out(Args::dweight).when(bool(weight)).is(weight);
}

inline ShapeRule shapes_of(const Row& row) {
  const std::string_view op = row.op;
  const bool back = row.direction == Direction::Backward;
  if (op == "rope_table") return table_shapes;
  if (op == "rope_append") return append_shapes;
  if (op == "rms_norm_rope") return back ? norm_backward_shapes : norm_shapes;
  return back ? rotated_shapes<RopeBackwardArgs, RopeBackwardArgs::dy, RopeBackwardArgs::dx>
              : rotated_shapes<RopeArgs, RopeArgs::x, RopeArgs::y>;
}

}  // namespace baracuda::rope
