// What the inputs of a call broadcast to.
#pragma once
#include <algorithm>

#include "core/operand.h"
#include "ops/expr/skus.h"

namespace baracuda::expr {

inline IterationSpace input_space(const Launch& launch, int inputs) {
  IterationSpace space;
  for (int k = 0; k < inputs; ++k) {
    const TensorView& x = launch[ExprArgs::x0 + k];
    const int lead = std::max(0, x.rank - space.rank);
    for (int d = space.rank - 1; d >= 0 && lead > 0; --d) space.shape[d + lead] = space.shape[d];
    for (int d = 0; d < lead; ++d) space.shape[d] = 1;
    space.rank += lead;
    for (int i = 0; i < x.rank; ++i)
      if (x.shape[i] != 1) space.shape[space.rank - x.rank + i] = x.shape[i];
  }
  return space;
}

}  // namespace baracuda::expr
