// Handlers of the functions of one number, in float.
#define BCU_EXPR_UNARY
#include "ops/expr/handlers.h"

namespace baracuda::expr {

template <>
const Handler<float>* unary_handlers<float>() {
  static constexpr auto kTable = part_of<float>();
  return kTable.by_function;
}

}  // namespace baracuda::expr
