// The SKU table of the functions of one number.
#pragma once
#include "core/row.h"
#include "ops/unary/math.h"

namespace baracuda::unary {

// approximate: 0 none (erf), 1 tanh.
BCU_ATTRS(GeluAttrs, (i64, approximate))

// What functions are called with, and their gradients; which of these tensors, beside dy, a gradient takes.
template <class Op>
BCU_ARGS(ForwardArgs, (x, y), ())
template <class Op>
BCU_ARGS(BackwardArgs, (dy, x, dx), ())
template <class Op>
inline constexpr int kSaved = BackwardArgs<Op>::x;

// clang-format off
#define BCU_UNARY_FLOATS(Op, name, saved, ...)              \
  template <>                                               \
  BCU_ARGS(BackwardArgs<Op>, (dy, saved, dx), ())           \
  template <>                                               \
  inline constexpr int kSaved<Op> = BackwardArgs<Op>::saved;
#define BCU_UNARY_REALS(Op, name, saved, ...) BCU_UNARY_FLOATS(Op, name, saved)
#define BCU_UNARY_STEPS(...)
#define BCU_UNARY_INTEGERS(...)
#define BCU_UNARY_BITS(...)
#define BCU_UNARY_QUESTIONS(...)
#define BCU_UNARY_STEP_NUMBERS(Op, name, numbers) \
  template <>                                     \
  BCU_ARGS(ForwardArgs<Op>, (x, y), numbers)
#define BCU_UNARY_FLOAT_NUMBERS(Op, name, numbers, ...) \
  BCU_UNARY_STEP_NUMBERS(Op, name, numbers)             \
  template <>                                           \
  BCU_ARGS(BackwardArgs<Op>, (dy, x, dx), numbers)
#define BCU_UNARY_REAL_NUMBERS(Op, name, elements, numbers, ...) BCU_UNARY_FLOAT_NUMBERS(Op, name, numbers)
#include "ops/unary/ops.def"
// clang-format on

template <class Op>
struct Forward {};  // of floats
template <class Op>
struct Real {};  // of floats and integers
template <class Op>
struct Integers {};
template <class Op>
struct Backward {};
// Op, or Other to approximate it.
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

template <class Tag, class Args>
constexpr auto tiled(const char* op, Bound bound) {
  return row<Tag>(op).name("tiled").takes(kFloats).in_place().within(bound).template args_of<Args>();
}
// Float functions also read integers, which torch promotes to float.
template <class Tag, class Op>
constexpr auto forward(const char* op, Bound bound) {
  return tiled<Tag, ForwardArgs<Op>>(op, bound).reads(kReal);
}
template <class Tag, class Op>
constexpr auto backward(const char* op, Bound bound) {
  return tiled<Tag, BackwardArgs<Op>>(op, bound).backward();
}

// The rows of one op with a gradient.
template <class Tag, class GradientTag, class Op>
constexpr auto function(const char* op, Elements elements, Bound bound, Bound gradient) {
  return table(forward<Tag, Op>(op, bound).takes(elements), backward<GradientTag, Op>(op, gradient));
}

// clang-format off
inline constexpr auto kLocal = join(
#define BCU_UNARY_FLOATS(Op, name, saved, ...) function<Forward<Op>, Backward<Op>, Op>(name, kFloats, __VA_ARGS__),
#define BCU_UNARY_REALS(Op, name, saved, ...) function<Real<Op>, Backward<Op>, Op>(name, kNumeric, __VA_ARGS__),
#define BCU_UNARY_STEPS(Op, name, elements) table(forward<Real<Op>, Op>(name, exact()).takes(elements)),
#define BCU_UNARY_INTEGERS(Op, name) table(forward<Integers<Op>, Op>(name, exact()).takes(kInts)),
#define BCU_UNARY_BITS(Op, name) table(forward<Bits<Op>, Op>(name, exact()).takes(kInts)),
#define BCU_UNARY_QUESTIONS(Op, name) table(forward<Real<Op>, Op>(name, exact()).takes(kReal)),
#define BCU_UNARY_FLOAT_NUMBERS(Op, name, numbers, ...)                                                           \
    function<ForwardNumbers<Op, BCU_UNARY_COUNT(numbers)>, BackwardNumbers<Op, BCU_UNARY_COUNT(numbers)>, Op>( \
        name, kFloats, __VA_ARGS__),
#define BCU_UNARY_REAL_NUMBERS(Op, name, elements, numbers, ...)                                               \
    function<RealNumbers<Op, BCU_UNARY_COUNT(numbers)>, BackwardNumbers<Op, BCU_UNARY_COUNT(numbers)>, Op>( \
        name, elements, __VA_ARGS__),
#define BCU_UNARY_STEP_NUMBERS(Op, name, numbers) \
    table(forward<ForwardNumbers<Op, BCU_UNARY_COUNT(numbers)>, Op>(name, exact())),
#include "ops/unary/ops.def"
    table(forward<Integers<LogicalNot>, LogicalNot>("bitwise_not", exact()).takes(kBool),
          forward<Forward<Either<Gelu, GeluTanh>>, Gelu>("gelu", sum(4)).attrs_of<GeluAttrs>(),
          backward<Backward<Either<Gelu, GeluTanh>>, Gelu>("gelu", sum(6)).attrs_of<GeluAttrs>()));
// clang-format on

inline constexpr auto kTable = everywhere(kLocal);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::unary
