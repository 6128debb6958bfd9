// Handlers of the functions of two and three operands, in double.
#define BCU_EXPR_OTHERS
#include "ops/expr/handlers.h"

namespace baracuda::expr {

template <>
const Handler<double>* other_handlers<double>() {
  static constexpr auto kTable = part_of<double>();
  return kTable.by_function;
}

}  // namespace baracuda::expr
