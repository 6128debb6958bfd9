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
// The first attribute, 0 or 1, says which of the two.
template <class Op, class Other>
struct Either : FloatOp {};
// Functions that take further numbers, given to run.
template <class Op>
struct ForwardNumbers {};
template <class Op>
struct BackwardNumbers {};

// Float functions also read integers, which torch promotes to float.
template <class Tag>
constexpr auto forward(const char* op, Bound bound) {
  return row<Tag>(op).name("tiled").takes(kFloats).reads(kReal).in_place().within(bound);
}
template <class Tag>
constexpr auto backward(const char* op, Bound bound) {
  return row<Tag>(op).backward().name("tiled").takes(kFloats).in_place().within(bound);
}

template <class Op>
inline constexpr Elements kTakes = (Op::kFloats ? kFloats : kNoElements) | (Op::kIntegers ? kInts : kNoElements);

// The rows of one op: a function, and its gradient where it has one.
template <class Op>
constexpr auto function(const char* op, Bound bound, Elements elements = kTakes<Op>) {
  return table(forward<Forward<Op>>(op, bound).takes(elements));
}
template <class Op>
constexpr auto function(const char* op, Bound bound, Bound gradient) {
  return join(function<Op>(op, bound), table(backward<Backward<Op>>(op, gradient)));
}

// Bounds of the vector math, the larger of f32 and f64, as its headers state them; what is composed of it adds one unit
// per further rounding, two for a rounding that is scaled up.
// clang-format off
inline constexpr auto kTable = join(
    function<Neg>("neg", exact(), exact()),
    function<Abs>("abs", exact(), exact()),
    function<Sign>("sign", exact()),
    function<Square>("square", exact(), ulp(1)),
    function<Relu>("relu", exact(), exact()),
    function<Floor>("floor", exact()),
    function<Ceil>("ceil", exact()),
    function<Round>("round", exact()),
    function<Trunc>("trunc", exact()),
    function<IsNan>("isnan", exact(), kReal),
    function<IsInf>("isinf", exact(), kReal),
    function<IsFinite>("isfinite", exact(), kReal),
    function<Signbit>("signbit", exact(), kReal),
    function<LogicalNot>("logical_not", exact(), kReal),
    function<LogicalNot>("bitwise_not", exact(), kBool),
    function<BitwiseNot>("bitwise_not", exact()),
    function<Reciprocal>("reciprocal", exact(), ulp(2)),
    function<Sqrt>("sqrt", exact(), exact()),
    function<Rsqrt>("rsqrt", ulp(1.5), ulp(3)),
    function<Exp>("exp", ulp(1.2), exact()),
    function<Exp2>("exp2", ulp(1.3), ulp(3)),
    function<Expm1>("expm1", ulp(1.2), ulp(2)),
    function<Log>("log", ulp(0.9), exact()),
    function<Log2>("log2", ulp(0.9), ulp(3)),
    function<Log10>("log10", ulp(0.8), ulp(3)),
    function<Log1p>("log1p", ulp(1.4), ulp(2)),
    function<Sin>("sin", ulp(1), ulp(3)),
    function<Cos>("cos", ulp(1), ulp(3)),
    function<Tan>("tan", ulp(1.7), ulp(3)),
    function<Asin>("asin", ulp(0.8), ulp(3)),
    function<Acos>("acos", ulp(0.8), ulp(3)),
    function<Atan>("atan", ulp(0.8), ulp(4)),
    function<Deg2rad>("deg2rad", ulp(0.9), ulp(0.9)),
    function<Rad2deg>("rad2deg", ulp(0.9), ulp(0.9)),
    function<Sinh>("sinh", ulp(1.8), ulp(4)),
    function<Cosh>("cosh", ulp(1.6), ulp(4)),
    function<Tanh>("tanh", ulp(1.6), ulp(4)),
    function<Erf>("erf", ulp(1.5), ulp(6)),
    function<Erfc>("erfc", ulp(1.8), ulp(6)),
    function<Sigmoid>("sigmoid", ulp(1.6), ulp(3)),
    function<Silu>("silu", ulp(4), sum(6)),
    table(forward<Forward<Either<Gelu, GeluTanh>>>("gelu", sum(4)).attrs_of<GeluAttrs>(),
          backward<Backward<Either<Gelu, GeluTanh>>>("gelu", sum(6)).attrs_of<GeluAttrs>(),
          forward<ForwardNumbers<Softplus>>("softplus", sum(3)),
          backward<BackwardNumbers<Softplus>>("softplus", sum(3))));
// clang-format on
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::unary
