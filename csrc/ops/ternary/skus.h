// The SKU table of the functions of three operands.
#pragma once
#include <type_traits>

#include "core/row.h"
#include "ops/ternary/math.h"

namespace baracuda::ternary {

// A bound that is not there is not compared with.
BCU_ATTRS(ClampAttrs, (i64, has_min), (i64, has_max))
BCU_ARGS(ClampArgs, (x, y), (min, max))
BCU_ARGS(ClampBackwardArgs, (dy, x, dx), (min, max))
BCU_ARGS(WhereArgs, (condition, a, b, y), (a_number, b_number))
BCU_ARGS(WhereBackwardArgs, (dy, condition, da, db), ())
BCU_ARGS(OperandArgs, (a, b, c, y), (b_number, c_number))
BCU_ARGS(OperandBackwardArgs, (dy, a, b, c, da, db, dc), (b_number, c_number))
BCU_ARGS(ValueArgs, (a, b, c, y), (b_number, c_number, value))
BCU_ARGS(ValueBackwardArgs, (dy, a, b, c, da, db, dc), (b_number, c_number, value))

struct WhereForward {};
struct WhereBackward {};
struct ClampForward {};
struct ClampBackward {};
// Functions of three operands, with kNumbers numbers besides.
template <class Op, int kNumbers>
struct Forward {};
template <class Op, int kNumbers>
struct Reals {};
template <class Op, int kNumbers>
struct Backward {};
template <int kNumbers>
using ForwardArgs = std::conditional_t<kNumbers == 0, OperandArgs, ValueArgs>;
template <int kNumbers>
using BackwardArgs = std::conditional_t<kNumbers == 0, OperandBackwardArgs, ValueBackwardArgs>;

template <class Tag, class Args>
constexpr auto tiled(const char* op, Elements elements) {
  return row<Tag>(op).name("tiled").takes(elements).in_place().template args_of<Args>();
}

template <template <class, int> class Tag, class Op, int kNumbers>
constexpr auto function(const char* op, Elements elements, Bound bound, Bound gradient) {
  return table(
      tiled<Tag<Op, kNumbers>, ForwardArgs<kNumbers>>(op, elements).reads(kReal).within(bound),
      tiled<Backward<Op, kNumbers>, BackwardArgs<kNumbers>>(op, kFloats).backward().reads(kReal).within(gradient));
}

inline constexpr auto kChoices =
    table(tiled<WhereForward, WhereArgs>("where", kReal).reads(kReal).exact(),
          tiled<WhereBackward, WhereBackwardArgs>("where", kFloats).backward().reads(kBool).exact(),
          tiled<ClampForward, ClampArgs>("clamp", kNumeric).reads(kReal).attrs_of<ClampAttrs>().exact(),
          tiled<ClampBackward, ClampBackwardArgs>("clamp", kFloats).backward().attrs_of<ClampAttrs>().exact());

// clang-format off
inline constexpr auto kLocal = join(
#define BCU_TERNARY_REALS(Op, name, elements, n, ...) \
    function<Reals, Op, n>(name, elements, __VA_ARGS__),
#define BCU_TERNARY_FLOATS(Op, name, elements, n, ...) \
    function<Forward, Op, n>(name, elements, __VA_ARGS__),
#include "ops/ternary/ops.def"
    kChoices);
// clang-format on

inline constexpr auto kTable = everywhere(kLocal);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::ternary
