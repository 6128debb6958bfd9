// The SKU table of the functions of one number.
#pragma once
#include "core/row.h"
#include "ops/unary/math.h"

namespace baracuda::unary {

// approximate: 0 none (erf), 1 tanh.
BCU_ATTRS(GeluAttrs, (i64, approximate))

template <class Op>
struct Forward {};
template <class Op>
struct Backward {};
struct GeluForward {};
struct GeluBackward {};
struct SoftplusForward {};
struct SoftplusBackward {};

// Float functions also read integers, which torch promotes to float.
template <class Op>
constexpr auto forward(const char* op) {
  return row<Forward<Op>>(op).name("tiled").takes(Op::kIntegers ? kNumeric : kFloats).reads(kReal).in_place();
}
template <class Op>
constexpr auto backward(const char* op) {
  return row<Backward<Op>>(op).backward().name("tiled").takes(kFloats).in_place();
}

inline constexpr auto kExact =
    table(forward<Neg>("neg").exact(), forward<Abs>("abs").exact(), forward<Sign>("sign").exact(),
          forward<Square>("square").exact(), forward<Relu>("relu").exact(), forward<Floor>("floor").exact(),
          forward<Ceil>("ceil").exact(), forward<Round>("round").exact(), forward<Trunc>("trunc").exact(),
          forward<Reciprocal>("reciprocal").exact(), forward<Sqrt>("sqrt").exact());

// Bounds of the vector math, the larger of f32 and f64, as its headers state them; what is composed of it adds one unit
// per further rounding, two for a rounding that is scaled up.
inline constexpr auto kFunctions =
    table(forward<Rsqrt>("rsqrt").ulp(1.5), forward<Exp>("exp").ulp(1.2), forward<Exp2>("exp2").ulp(1.3),
          forward<Expm1>("expm1").ulp(1.2), forward<Log>("log").ulp(0.9), forward<Log2>("log2").ulp(0.9),
          forward<Log10>("log10").ulp(0.8), forward<Log1p>("log1p").ulp(1.4), forward<Sin>("sin").ulp(1),
          forward<Cos>("cos").ulp(1), forward<Tan>("tan").ulp(1.7), forward<Sinh>("sinh").ulp(1.8),
          forward<Cosh>("cosh").ulp(1.6), forward<Tanh>("tanh").ulp(1.6), forward<Erf>("erf").ulp(1.5),
          forward<Erfc>("erfc").ulp(1.8), forward<Sigmoid>("sigmoid").ulp(1.6), forward<Silu>("silu").ulp(6),
          row<GeluForward>("gelu").name("tiled").takes(kFloats).reads(kReal).in_place().attrs_of<GeluAttrs>().sum(4),
          row<SoftplusForward>("softplus").name("tiled").takes(kFloats).reads(kReal).in_place().sum(3));

inline constexpr auto kGradients =
    table(backward<Neg>("neg").exact(), backward<Abs>("abs").exact(), backward<Square>("square").ulp(1),
          backward<Relu>("relu").exact(), backward<Reciprocal>("reciprocal").ulp(2), backward<Sqrt>("sqrt").exact(),
          backward<Rsqrt>("rsqrt").ulp(3), backward<Exp>("exp").exact(), backward<Exp2>("exp2").ulp(3),
          backward<Expm1>("expm1").ulp(2), backward<Log>("log").exact(), backward<Log2>("log2").ulp(3),
          backward<Log10>("log10").ulp(3), backward<Log1p>("log1p").ulp(2), backward<Sin>("sin").ulp(3),
          backward<Cos>("cos").ulp(3), backward<Tan>("tan").ulp(3), backward<Sinh>("sinh").ulp(4),
          backward<Cosh>("cosh").ulp(4), backward<Tanh>("tanh").ulp(4), backward<Erf>("erf").ulp(6),
          backward<Erfc>("erfc").ulp(6), backward<Sigmoid>("sigmoid").ulp(3), backward<Silu>("silu").sum(6),
          row<GeluBackward>("gelu").backward().name("tiled").takes(kFloats).in_place().attrs_of<GeluAttrs>().sum(6),
          row<SoftplusBackward>("softplus").backward().name("tiled").takes(kFloats).in_place().sum(3));

inline constexpr auto kTable = join(kExact, kFunctions, kGradients);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::unary
