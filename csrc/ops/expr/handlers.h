// The handlers of the functions of one part, in one compute type. Included where BCU_EXPR_UNARY, BCU_EXPR_SLOPES or
// BCU_EXPR_OTHERS says which part, see ops.def.
#pragma once
#include "ops/expr/threaded.h"
#include "ops/expr/values.h"

namespace baracuda::expr {

// A function that an integer divisor of zero has no value of: whoever calls it looks for that, and passes 1 instead.
template <class Op>
struct Divided : Op {};

template <class F>
inline constexpr bool divides = false;
template <class Op>
inline constexpr bool divides<Divided<Op>> = true;

template <class C, class F, int kArrays, int kNumbers, uint32_t kElements>
constexpr Handler<C> made() {
  if constexpr ((Elements{kElements} & kComputedIn<C>).empty())
    return nullptr;
  else if constexpr (divides<F> && std::is_integral_v<C>)
    return &Code<C>::template divide<F>;
  else
    return &Code<C>::template call<F, kArrays, kNumbers>;
}

template <class C>
struct HandlerTable {
  Handler<C> by_function[kFunctionCount] = {};
};

template <class C>
constexpr HandlerTable<C> part_of() {
  HandlerTable<C> part;
#define BCU_EXPR(F, name, arrays, numbers, elements, answers) \
  part.by_function[function_of(name)] = made<C, F, arrays, numbers, Elements(elements).bits>();
#include "ops/expr/ops.def"
  return part;
}

}  // namespace baracuda::expr
