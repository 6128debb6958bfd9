// The SKU table of the functions of three operands.
#pragma once
#include "core/row.h"
#include "ops/ternary/math.h"

namespace baracuda::ternary {

// A bound that is not there is not compared with.
BCU_ATTRS(ClampAttrs, (i64, has_min), (i64, has_max))

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

template <class Tag, class GradientTag>
constexpr auto function(const char* op, Elements elements, Bound bound, Bound gradient) {
  return table(row<Tag>(op).name("tiled").takes(elements).reads(kReal).in_place().within(bound),
               row<GradientTag>(op).backward().name("tiled").takes(kFloats).reads(kReal).in_place().within(gradient));
}

inline constexpr auto kChoices = table(
    row<WhereForward>("where").name("tiled").takes(kReal).reads(kReal).in_place().exact(),
    row<WhereBackward>("where").backward().name("tiled").takes(kFloats).reads(kBool).in_place().exact(),
    row<ClampForward>("clamp").name("tiled").takes(kNumeric).reads(kReal).in_place().attrs_of<ClampAttrs>().exact(),
    row<ClampBackward>("clamp").backward().name("tiled").takes(kFloats).in_place().attrs_of<ClampAttrs>().exact());

// clang-format off
inline constexpr auto kLocal = join(
#define BCU_TERNARY_REALS(Op, name, elements, n, ...) \
    function<Reals<Op, n>, Backward<Op, n>>(name, elements, __VA_ARGS__),
#define BCU_TERNARY_FLOATS(Op, name, elements, n, ...) \
    function<Forward<Op, n>, Backward<Op, n>>(name, elements, __VA_ARGS__),
#include "ops/ternary/ops.def"
    kChoices);
// clang-format on

inline constexpr auto kTable = everywhere(kLocal);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::ternary
