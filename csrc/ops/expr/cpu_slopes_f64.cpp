// Handlers of the gradients of the functions of one number, in double.
#define BCU_EXPR_SLOPES
#include "ops/expr/handlers.h"

namespace baracuda::expr {

template <>
const Handler<double>* slope_handlers<double>() {
  static constexpr auto kTable = part_of<double>();
  return kTable.by_function;
}

}  // namespace baracuda::expr
