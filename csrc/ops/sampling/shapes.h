// What drawing tokens asks of its tensors.
#pragma once
#include <string_view>

#include "core/shapes.h"
#include "ops/sampling/skus.h"

namespace baracuda::sampling {

inline Shapes::Tensor logit_shapes(Shapes& s) {
  using Args = SampleArgs;  // and of filter_logits
  const auto logits = s.in(Args::logits).ranks(1, 2);
  s.may_in(Args::counts, Element::I32).is(logits);
  s.may_in(Args::mask, Element::Bool).fits(logits);
  s.may_in(Args::controls, Element::F32).is(logits.sizes().lead(1).then(kControls));
  s.want(logits.at(-1) < int64_t{1} << 29, Args::logits, "fewer than 2^29 tokens");
  return logits;
}
inline void sample_shapes(Shapes& s) {
  const auto logits = logit_shapes(s);
  const auto y = s.out(SampleArgs::y, Element::I64);
  const Sizes rows = logits.sizes().lead(1);
  y.is(y.rank() == rows.rank ? rows : rows.then(y.at(-1)));  // one for each row, or several
}
inline void filter_shapes(Shapes& s) {
  const auto logits = logit_shapes(s);
  s.out(FilterArgs::y).is(logits);
  s.flag(s.attrs<FilterAttrs>().probabilities, "probabilities");
}
inline void verify_shapes(Shapes& s) {
  using Args = VerifyArgs;
  const auto draft = s.in(Args::draft).ranks(3), tokens = s.in(Args::draft_tokens, s.aux()).ranks(2);
  tokens.is(draft.sizes().lead(1));
  const auto y = s.out(Args::y, Element::I64).ranks(2);
  y.is({tokens.at(0), y.at(1)});
  s.want(y.at(1) == tokens.at(1) + 1, Args::y, "one more column than there are draft tokens");
  s.in(Args::target).is({tokens.at(0), y.at(1), draft.at(2)});
  s.out(Args::accepted, Element::I64).is({tokens.at(0)});
}
inline void tree_shapes(Shapes& s) {
  using Args = TreeArgs;
  const auto tokens = s.in(Args::tokens, s.aux()).ranks(2), target = s.in(Args::target).ranks(3);
  s.in(Args::parents, s.aux()).is(tokens);
  s.want(target.at(0) == tokens.at(0) && target.at(1) == tokens.at(1) + 1, Args::target,
         "a row for each row of tokens, with one place more");
  s.out(Args::y, Element::I64).is(target.sizes().lead(1));
  s.out(Args::path, Element::I64).is(tokens);
  s.out(Args::accepted, Element::I64).is({tokens.at(0)});
}

inline ShapeRule shapes_of(const Row& row) {
  const std::string_view op = row.op;
  return op == "sample_tokens"   ? sample_shapes
         : op == "filter_logits" ? filter_shapes
         : op == "verify_draft"  ? verify_shapes
                                 : tree_shapes;
}

}  // namespace baracuda::sampling
