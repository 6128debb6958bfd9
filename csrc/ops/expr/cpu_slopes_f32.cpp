// Handlers of the gradients of the functions of one number, in float.
#define BCU_EXPR_SLOPES
#include "ops/expr/handlers.h"

namespace baracuda::expr {

template <>
const Handler<float>* slope_handlers<float>() {
  static constexpr auto kTable = part_of<float>();
  return kTable.by_function;
}

}  // namespace baracuda::expr
