// The SKU table of the functions of two numbers. Inputs broadcast, may have any real element, and either may be a
// number given to run instead of a tensor.
#pragma once
#include "core/row.h"
#include "ops/binary/math.h"

namespace baracuda::binary {

// number: what stands for the operand that is absent.
BCU_ARGS(OperandArgs, (a, b, y), (number))
BCU_ARGS(OperandBackwardArgs, (dy, a, b, da, db), (number))
BCU_ARGS(SumArgs, (a, b, y), (number, alpha))
BCU_ARGS(SumBackwardArgs, (dy, da, db), (alpha))
BCU_ARGS(CloseArgs, (a, b, y), (number, rtol, atol, equal_nan))

template <class Op>
struct Forward {};
template <class Op>
struct Floats {};
template <class Op>
struct Divisions {};  // a % b and its kin: integer division by zero is an error
template <class Op>
struct Bits {};
template <class Op>
struct Backward {};
template <class Op>
struct Close {};       // of floats, with tolerances
struct Neighbours {};  // nextafter, which depends on the element
// add and sub: a + alpha b, with -alpha for sub
template <int kSign>
struct Sum {};
template <int kSign>
struct SumBackward {};

// How Nextafter is told an element.
constexpr int neighbours_of(Element e) { return e == Element::F16 ? 2 : e == Element::BF16 ? 1 : 0; }

// The rows of one op: a function, and its gradient where it has one.
template <class Tag, class Args = OperandArgs>
constexpr auto tiled(const char* op, Elements elements, Bound bound) {
  return row<Tag>(op).name("tiled").takes(elements).reads(kReal).in_place().within(bound).template args_of<Args>();
}
template <class Tag, class Args = OperandArgs>
constexpr auto function(const char* op, Elements elements, Bound bound) {
  return table(tiled<Tag, Args>(op, elements, bound));
}
template <class Tag, class GradientTag, class Args = OperandArgs, class GradientArgs = OperandBackwardArgs>
constexpr auto function(const char* op, Elements elements, Bound bound, Bound gradient) {
  return table(tiled<Tag, Args>(op, elements, bound),
               tiled<GradientTag, GradientArgs>(op, kFloats, gradient).backward());
}

// clang-format off
inline constexpr auto kLocal = join(
    function<Sum<1>, SumBackward<1>, SumArgs, SumBackwardArgs>("add", kReal, sum(1), exact()),
    function<Sum<-1>, SumBackward<-1>, SumArgs, SumBackwardArgs>("sub", kNumeric, sum(1), exact()),
#define BCU_BINARY_REALS(Op, name, ...) function<Forward<Op>, Backward<Op>>(name, __VA_ARGS__),
#define BCU_BINARY_FLOATS(Op, name, ...) function<Floats<Op>, Backward<Op>>(name, kFloats, __VA_ARGS__),
#define BCU_BINARY_DIVISIONS(Op, name, ...) function<Divisions<Op>, Backward<Op>>(name, kNumeric, __VA_ARGS__),
#define BCU_BINARY_QUESTIONS(Op, name) function<Forward<Op>>(name, kReal, exact()),
#define BCU_BINARY_BITS(Op, name, elements) function<Bits<Op>>(name, elements, exact()),
#define BCU_BINARY_STEPS(Op, name, elements) function<Forward<Op>>(name, elements, exact()),
#define BCU_BINARY_FLOAT_QUESTIONS(Op, name, n) function<Close<Op>, CloseArgs>(name, kFloats, exact()),
#include "ops/binary/ops.def"
    function<Divisions<FloorDivide>>("floor_divide", kNumeric, ulp(2)),
    function<Divisions<TruncDivide>>("trunc_divide", kNumeric, exact()),
    function<Neighbours>("nextafter", kFloats, exact()));
// clang-format on

inline constexpr auto kTable = everywhere(kLocal);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::binary
