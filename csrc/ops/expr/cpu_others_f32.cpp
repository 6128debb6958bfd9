// Handlers of the functions of two and three operands, in float.
#define BCU_EXPR_OTHERS
#include "ops/expr/handlers.h"

namespace baracuda::expr {

template <>
const Handler<float>* other_handlers<float>() {
  static constexpr auto kTable = part_of<float>();
  return kTable.by_function;
}

}  // namespace baracuda::expr
