// The SKU table of the functions of two numbers. Inputs broadcast, may have any real element, and either may be a
// number given to run instead of a tensor.
#pragma once
#include "core/row.h"
#include "ops/binary/math.h"

namespace baracuda::binary {

template <class Op>
struct Forward {};
template <class Op>
struct Integers {};  // a % b and its kin: integer division by zero is an error
template <class Op>
struct Bits {};
template <class Op>
struct Backward {};
// add and sub: a + alpha b, with -alpha for sub
template <int kSign>
struct Sum {};
template <int kSign>
struct SumBackward {};

template <class Tag>
constexpr auto forward(const char* op, Elements elements) {
  return row<Tag>(op).name("tiled").takes(elements).reads(kReal).in_place();
}
template <class Tag>
constexpr auto backward(const char* op) {
  return row<Tag>(op).backward().name("tiled").takes(kFloats).reads(kReal).in_place();
}

inline constexpr auto kArithmetic =
    table(forward<Sum<1>>("add", kReal).sum(1), forward<Sum<-1>>("sub", kNumeric).sum(1),
          forward<Forward<Mul>>("mul", kReal).exact(), forward<Forward<Div>>("div", kFloats).exact(),
          forward<Forward<Pow>>("pow", kNumeric).ulp(1), forward<Forward<Maximum>>("maximum", kReal).exact(),
          forward<Forward<Minimum>>("minimum", kReal).exact(), forward<Integers<Fmod>>("fmod", kNumeric).exact(),
          forward<Integers<Remainder>>("remainder", kNumeric).exact(),
          forward<Integers<FloorDivide>>("floor_divide", kNumeric).ulp(2));

// Results are bool.
inline constexpr auto kComparisons =
    table(forward<Forward<Eq>>("eq", kReal).exact(), forward<Forward<Ne>>("ne", kReal).exact(),
          forward<Forward<Lt>>("lt", kReal).exact(), forward<Forward<Le>>("le", kReal).exact(),
          forward<Forward<Gt>>("gt", kReal).exact(), forward<Forward<Ge>>("ge", kReal).exact(),
          forward<Forward<LogicalAnd>>("logical_and", kReal).exact(),
          forward<Forward<LogicalOr>>("logical_or", kReal).exact(),
          forward<Forward<LogicalXor>>("logical_xor", kReal).exact());

inline constexpr auto kBitwise = table(forward<Bits<BitwiseAnd>>("bitwise_and", kInts | kBool).exact(),
                                       forward<Bits<BitwiseOr>>("bitwise_or", kInts | kBool).exact(),
                                       forward<Bits<BitwiseXor>>("bitwise_xor", kInts | kBool).exact());

inline constexpr auto kGradients =
    table(backward<SumBackward<1>>("add").exact(), backward<SumBackward<-1>>("sub").exact(),
          backward<Backward<Mul>>("mul").exact(), backward<Backward<Div>>("div").ulp(3),
          backward<Backward<Pow>>("pow").sum(6), backward<Backward<Maximum>>("maximum").exact(),
          backward<Backward<Minimum>>("minimum").exact(), backward<Backward<Fmod>>("fmod").ulp(4),
          backward<Backward<Remainder>>("remainder").ulp(4));

inline constexpr auto kTable = join(kArithmetic, kComparisons, kBitwise, kGradients);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::binary
