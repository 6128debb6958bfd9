// What a fused expression asks of its tensors: the program's elements and shapes.
#pragma once
#include "core/shapes.h"
#include "ops/expr/skus.h"
#include "ops/expr/source.h"

namespace baracuda::expr {

inline void expr_shapes(Shapes& s) {
  ParamMeta metas[kMaxInputs + kMaxOutputs];
  const auto say = [&](int param, const Shapes::Tensor& tensor) {
    if (!tensor) return;
    ParamMeta& m = metas[param];
    m.rank = tensor.rank(), m.element = tensor.element();
    for (int i = 0; i < m.rank; ++i) m.shape[i] = tensor.at(i);
  };
  for (int k = 0; k < kMaxInputs; ++k) say(ExprArgs::x0 + k, s.may_read(ExprArgs::x0 + k));
  for (int k = 0; k < kMaxOutputs; ++k) say(ExprArgs::y0 + k, s.may_out(ExprArgs::y0 + k, kReal));
  const Problem problem{s.slots(), metas, kMaxInputs + kMaxOutputs, s.element(), s.aux()};
  const KnownProgram& known = known_program(text_at(problem.attrs));
  if (known.wrong) return;  // the row's own check says what is wrong with it
  const Reason wrong = fitting(problem, known.program);
  s.want(!wrong, ExprArgs::y0, wrong.want);
}

inline ShapeRule shapes_of(const Row&) { return expr_shapes; }

inline SourceRule source_of(const Row& row) { return row.backend == Backend::Cpu ? nullptr : kernel_text; }

}  // namespace baracuda::expr
