// The SKU table of the functions of one number.
#pragma once
#include "core/row.h"
#include "ops/unary/math.h"

namespace baracuda::unary {

// approximate: 0 none (erf), 1 tanh.
BCU_ATTRS(GeluAttrs, (i64, approximate))

template <class Op>
struct Forward {};  // of floats
template <class Op>
struct Real {};  // of floats and integers
template <class Op>
struct Integers {};
template <class Op>
struct Backward {};
// The first attribute, 0 or 1, says which of the two.
template <class Op, class Other>
struct Either {};
// Functions that take further numbers, given to run.
template <class Op, int kNumbers>
struct ForwardNumbers {};
template <class Op, int kNumbers>
struct RealNumbers {};
template <class Op, int kNumbers>
struct BackwardNumbers {};
// Functions of integers that take the element's bits besides.
template <class Op>
struct Bits {};

// Float functions also read integers, which torch promotes to float.
template <class Tag>
constexpr auto forward(const char* op, Bound bound) {
  return row<Tag>(op).name("tiled").takes(kFloats).reads(kReal).in_place().within(bound);
}
template <class Tag>
constexpr auto backward(const char* op, Bound bound) {
  return row<Tag>(op).backward().name("tiled").takes(kFloats).in_place().within(bound);
}

// The rows of one op with a gradient.
template <class Tag, class GradientTag>
constexpr auto function(const char* op, Elements elements, Bound bound, Bound gradient) {
  return table(forward<Tag>(op, bound).takes(elements), backward<GradientTag>(op, gradient));
}

// clang-format off
inline constexpr auto kLocal = join(
#define BCU_UNARY_FLOATS(Op, name, ...) function<Forward<Op>, Backward<Op>>(name, kFloats, __VA_ARGS__),
#define BCU_UNARY_REALS(Op, name, ...) function<Real<Op>, Backward<Op>>(name, kNumeric, __VA_ARGS__),
#define BCU_UNARY_STEPS(Op, name, elements) table(forward<Real<Op>>(name, exact()).takes(elements)),
#define BCU_UNARY_INTEGERS(Op, name) table(forward<Integers<Op>>(name, exact()).takes(kInts)),
#define BCU_UNARY_BITS(Op, name) table(forward<Bits<Op>>(name, exact()).takes(kInts)),
#define BCU_UNARY_QUESTIONS(Op, name) table(forward<Real<Op>>(name, exact()).takes(kReal)),
#define BCU_UNARY_FLOAT_NUMBERS(Op, name, n, ...) \
    function<ForwardNumbers<Op, n>, BackwardNumbers<Op, n>>(name, kFloats, __VA_ARGS__),
#define BCU_UNARY_REAL_NUMBERS(Op, name, elements, n, ...) \
    function<RealNumbers<Op, n>, BackwardNumbers<Op, n>>(name, elements, __VA_ARGS__),
#define BCU_UNARY_STEP_NUMBERS(Op, name, n) table(forward<ForwardNumbers<Op, n>>(name, exact())),
#include "ops/unary/ops.def"
    table(forward<Integers<LogicalNot>>("bitwise_not", exact()).takes(kBool),
          forward<Forward<Either<Gelu, GeluTanh>>>("gelu", sum(4)).attrs_of<GeluAttrs>(),
          backward<Backward<Either<Gelu, GeluTanh>>>("gelu", sum(6)).attrs_of<GeluAttrs>()));
// clang-format on

inline constexpr auto kTable = everywhere(kLocal);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::unary
