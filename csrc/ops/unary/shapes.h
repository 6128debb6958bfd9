// What functions of one number and their gradients ask of their tensors.
#pragma once
#include "core/shapes.h"
#include "ops/unary/skus.h"

namespace baracuda::unary {

template <bool kAnswers>
void forward_shapes(Shapes& s) {
  using Args = ForwardArgs<Neg>;
  const auto x = s.reads(Args::x);
  s.out(Args::y, kAnswers ? Element::Bool : s.element()).is(x);
}
inline void backward_shapes(Shapes& s) {
  using Args = BackwardArgs<Neg>;
  const auto dy = s.in(Args::dy);
  s.in(Args::x).is(dy);
  s.out(Args::dx).is(dy);
}

template <ShapeRule kPlain>
void gelu_shapes(Shapes& s) {
  kPlain(s);
  s.flag(s.attrs<GeluAttrs>().approximate, "approximate");
}

inline bool answers(std::string_view op) {
  constexpr std::string_view kNames[] = {
#define BCU_UNARY_QUESTIONS(Op, name) name,
#define BCU_UNARY_FLOATS(...)
#define BCU_UNARY_REALS(...)
#define BCU_UNARY_STEPS(...)
#define BCU_UNARY_INTEGERS(...)
#define BCU_UNARY_BITS(...)
#define BCU_UNARY_FLOAT_NUMBERS(...)
#define BCU_UNARY_REAL_NUMBERS(...)
#define BCU_UNARY_STEP_NUMBERS(...)
#include "ops/unary/ops.def"
  };
  return std::find(std::begin(kNames), std::end(kNames), op) != std::end(kNames);
}

inline ShapeRule shapes_of(const Row& row) {
  const bool back = row.direction == Direction::Backward;
  if (std::string_view(row.op) == "gelu")
    return back ? gelu_shapes<backward_shapes> : gelu_shapes<forward_shapes<false>>;
  if (back) return backward_shapes;
  return answers(row.op) ? forward_shapes<true> : forward_shapes<false>;
}

}  // namespace baracuda::unary
