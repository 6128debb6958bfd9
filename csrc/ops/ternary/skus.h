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

inline constexpr auto kLocal = table(
    row<WhereForward>("where").name("tiled").takes(kReal).reads(kReal).in_place().exact(),
    row<WhereBackward>("where").backward().name("tiled").takes(kFloats).reads(kBool).in_place().exact(),
    row<ClampForward>("clamp").name("tiled").takes(kNumeric).reads(kReal).in_place().attrs_of<ClampAttrs>().exact(),
    row<ClampBackward>("clamp").backward().name("tiled").takes(kFloats).in_place().attrs_of<ClampAttrs>().exact());

inline constexpr auto kTable = everywhere(kLocal);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::ternary
