// The SKU table of element conversion.
#pragma once
#include "core/row.h"

namespace baracuda::cast {

// saturate: numbers beyond an 8-bit float become its largest one, otherwise NaN or infinity.
BCU_ATTRS(CastAttrs, (i64, saturate))

struct Cast {};
struct FromF8 {};
struct ToF8 {};

inline constexpr Elements kF8 = Element::F8E4M3 | Element::F8E5M2;

// The elements are the input's and the output's.
inline constexpr auto kLocal =
    table(row<Cast>("cast").name("tiled").takes(kReal, kReal).attrs_of<CastAttrs>().exact(),
          row<FromF8>("cast").name("from_f8").takes(kF8, kReal | kF8).attrs_of<CastAttrs>().exact(),
          row<ToF8>("cast").name("to_f8").takes(kReal, kF8).attrs_of<CastAttrs>().exact());

inline constexpr auto kTable = everywhere(kLocal);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::cast
