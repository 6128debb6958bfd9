// Handlers of the functions of one number, in int64_t and uint64_t.
#define BCU_EXPR_UNARY
#include "ops/expr/handlers.h"

namespace baracuda::expr {

template <>
const Handler<int64_t>* unary_handlers<int64_t>() {
  static constexpr auto kTable = part_of<int64_t>();
  return kTable.by_function;
}
template <>
const Handler<uint64_t>* unary_handlers<uint64_t>() {
  static constexpr auto kTable = part_of<uint64_t>();
  return kTable.by_function;
}

}  // namespace baracuda::expr
