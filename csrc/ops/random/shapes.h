// What random numbers ask of their tensors.
#pragma once
#include "core/shapes.h"
#include "ops/random/skus.h"

namespace baracuda::random {

template <class Args>
void drawn_shapes(Shapes& s) {
  s.out(Args::y);
}
// The greatest number of an element up to which it holds all.
inline int64_t all_up_to(Element e) {
  if (e == Element::F16) return int64_t{1} << 11;
  if (e == Element::BF16) return int64_t{1} << 8;
  if (e == Element::F32) return int64_t{1} << 24;
  if (e == Element::F64) return int64_t{1} << 53;
  const int bits = info(e).bits - kSigned.has(e);
  return bits >= 63 ? INT64_MAX : (int64_t{1} << bits) - 1;
}
inline void permutation_shapes(Shapes& s) {
  const auto y = s.out(RandpermArgs::y).ranks(1);
  s.want(y.at(0) - 1 <= all_up_to(s.element()), RandpermArgs::y, "numbers that the element holds");
}
template <int kFrom, int kTo>
void dropped_shapes(Shapes& s) {
  const auto x = s.in(kFrom);
  s.out(kTo).is(x);
}
inline void bernoulli_shapes(Shapes& s) {
  const auto y = s.out(BernoulliArgs::y);
  const auto p = s.may_in(BernoulliArgs::p, s.aux()).is(y);
  s.attribute(p || s.aux() == s.wide(), "aux", "f64 for f64, else f32, where p is a number");
}
inline void multinomial_shapes(Shapes& s) {
  using Args = MultinomialArgs;
  const auto p = s.in(Args::p).ranks(1, 2), y = s.out(Args::y, Element::I64);
  y.is(p.sizes().lead(1).then(y.at(-1)));
  s.flag(s.attrs<MultinomialAttrs>().replacement, "replacement");
  const bool fits = s.attrs<MultinomialAttrs>().replacement != 0 || y.at(-1) <= p.at(-1);
  s.want(fits, Args::y, "at most as many samples as categories without replacement");
}

template <int kInputs>
void rejection_shapes(Shapes& s) {
  const auto y = s.out(kInputs);
  for (int i = 0; i < kInputs; ++i) s.in(i).is(y);
}

inline ShapeRule shapes_of(const Row& row) {
  const std::string_view op = row.op;
  if (op == "dropout")
    return row.direction == Direction::Forward ? dropped_shapes<DropoutArgs::x, DropoutArgs::y>
                                               : dropped_shapes<DropoutBackwardArgs::dy, DropoutBackwardArgs::dx>;
  if (op == "gamma" || op == "poisson") return rejection_shapes<1>;
  if (op == "beta" || op == "binomial") return rejection_shapes<2>;
  return op == "randperm"      ? permutation_shapes
         : op == "bernoulli"   ? bernoulli_shapes
         : op == "multinomial" ? multinomial_shapes
                               : drawn_shapes<UniformArgs>;
}

}  // namespace baracuda::random
