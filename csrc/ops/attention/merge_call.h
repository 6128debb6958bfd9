// The tensors of attention_merge as operands of an elementwise driver.
#pragma once
#include "host/tile.h"

namespace baracuda::attention {

// The same number for all columns of a row.
inline Operand along_rows(const TensorView& lse) {
  Operand o{lse.data, lse.element, {}};
  for (int i = 0; i < lse.rank; ++i) o.strides[i] = lse.shape[i] == 1 ? 0 : lse.strides[i];
  return o;
}

}  // namespace baracuda::attention
