// The SKU table of the functions of two numbers. Inputs broadcast, may have any real element, and either may be a
// number given to run instead of a tensor.
#pragma once
#include "core/row.h"
#include "ops/binary/math.h"

namespace baracuda::binary {

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
// add and sub: a + alpha b, with -alpha for sub
template <int kSign>
struct Sum {};
template <int kSign>
struct SumBackward {};

// The rows of one op: a function, and its gradient where it has one.
template <class Tag>
constexpr auto function(const char* op, Elements elements, Bound bound) {
  return table(row<Tag>(op).name("tiled").takes(elements).reads(kReal).in_place().within(bound));
}
template <class Tag, class GradientTag>
constexpr auto function(const char* op, Elements elements, Bound bound, Bound gradient) {
  return function<Tag>(op, elements, bound) +
         table(row<GradientTag>(op).backward().name("tiled").takes(kFloats).reads(kReal).in_place().within(gradient));
}

// clang-format off
inline constexpr auto kLocal = join(
    function<Sum<1>, SumBackward<1>>("add", kReal, sum(1), exact()),
    function<Sum<-1>, SumBackward<-1>>("sub", kNumeric, sum(1), exact()),
#define BCU_BINARY_REALS(Op, name, ...) function<Forward<Op>, Backward<Op>>(name, __VA_ARGS__),
#define BCU_BINARY_FLOATS(Op, name, ...) function<Floats<Op>, Backward<Op>>(name, kFloats, __VA_ARGS__),
#define BCU_BINARY_DIVISIONS(Op, name, ...) function<Divisions<Op>, Backward<Op>>(name, kNumeric, __VA_ARGS__),
#define BCU_BINARY_QUESTIONS(Op, name) function<Forward<Op>>(name, kReal, exact()),
#define BCU_BINARY_BITS(Op, name) function<Bits<Op>>(name, kInts | kBool, exact()),
#include "ops/binary/ops.def"
    function<Divisions<FloorDivide>>("floor_divide", kNumeric, ulp(2)));
// clang-format on

inline constexpr auto kTable = everywhere(kLocal);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::binary
