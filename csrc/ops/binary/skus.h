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
inline constexpr auto kTable = join(
    function<Sum<1>, SumBackward<1>>("add", kReal, sum(1), exact()),
    function<Sum<-1>, SumBackward<-1>>("sub", kNumeric, sum(1), exact()),
    function<Forward<Mul>, Backward<Mul>>("mul", kReal, exact(), exact()),
    function<Floats<Div>, Backward<Div>>("div", kFloats, exact(), ulp(3)),
    function<Forward<Pow>, Backward<Pow>>("pow", kNumeric, ulp(1), sum(6)),
    function<Forward<Maximum>, Backward<Maximum>>("maximum", kReal, exact(), exact()),
    function<Forward<Minimum>, Backward<Minimum>>("minimum", kReal, exact(), exact()),
    function<Divisions<Fmod>, Backward<Fmod>>("fmod", kNumeric, exact(), ulp(4)),
    function<Divisions<Remainder>, Backward<Remainder>>("remainder", kNumeric, exact(), ulp(4)),
    function<Divisions<FloorDivide>>("floor_divide", kNumeric, ulp(2)),
    // Results are bool.
    function<Forward<Eq>>("eq", kReal, exact()),
    function<Forward<Ne>>("ne", kReal, exact()),
    function<Forward<Lt>>("lt", kReal, exact()),
    function<Forward<Le>>("le", kReal, exact()),
    function<Forward<Gt>>("gt", kReal, exact()),
    function<Forward<Ge>>("ge", kReal, exact()),
    function<Forward<LogicalAnd>>("logical_and", kReal, exact()),
    function<Forward<LogicalOr>>("logical_or", kReal, exact()),
    function<Forward<LogicalXor>>("logical_xor", kReal, exact()),
    function<Bits<BitwiseAnd>>("bitwise_and", kInts | kBool, exact()),
    function<Bits<BitwiseOr>>("bitwise_or", kInts | kBool, exact()),
    function<Bits<BitwiseXor>>("bitwise_xor", kInts | kBool, exact()));
// clang-format on
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::binary
