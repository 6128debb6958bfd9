// What functions of two numbers and their gradients ask of their tensors, which broadcast.
#pragma once
#include "core/shapes.h"
#include "ops/binary/skus.h"

namespace baracuda::binary {

template <bool kAnswers>
void forward_shapes(Shapes& s) {
  using Args = OperandArgs;
  const auto a = s.may_read(Args::a), b = s.may_read(Args::b);
  s.want(a || b, Args::a, "a tensor for one of the operands");
  s.out(Args::y, kAnswers ? Element::Bool : s.element()).is(s.joined(a, b));
}
inline void backward_shapes(Shapes& s) {
  using Args = OperandBackwardArgs;
  const auto a = s.may_read(Args::a), b = s.may_read(Args::b);
  s.want(a || b, Args::a, "a tensor for one of the operands");
  const Sizes full = s.joined(a, b);
  s.in(Args::dy).is(full);
  s.may_out(Args::da).when(bool(a)).is(full);
  s.may_out(Args::db).when(bool(b)).is(full);
}
inline void sum_backward_shapes(Shapes& s) {
  using Args = SumBackwardArgs;
  const auto dy = s.in(Args::dy);
  const auto da = s.may_out(Args::da).is(dy), db = s.may_out(Args::db).is(dy);
  s.want(da || db, Args::da, "one of the gradients");
}

inline bool answers(std::string_view op) {
  constexpr std::string_view kNames[] = {
#define BCU_BINARY_QUESTIONS(Op, name) name,
#define BCU_BINARY_FLOAT_QUESTIONS(Op, name, n) name,
#define BCU_BINARY_REALS(...)
#define BCU_BINARY_FLOATS(...)
#define BCU_BINARY_DIVISIONS(...)
#define BCU_BINARY_BITS(...)
#define BCU_BINARY_STEPS(...)
#include "ops/binary/ops.def"
  };
  return std::find(std::begin(kNames), std::end(kNames), op) != std::end(kNames);
}

inline ShapeRule shapes_of(const Row& row) {
  const std::string_view op = row.op;
  if (row.direction == Direction::Backward) return op == "add" || op == "sub" ? sum_backward_shapes : backward_shapes;
  return answers(op) ? forward_shapes<true> : forward_shapes<false>;
}

}  // namespace baracuda::binary
