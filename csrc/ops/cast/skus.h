// The SKU table of element conversion.
#pragma once
#include "core/row.h"

namespace baracuda::cast {

// saturate: numbers beyond an 8-bit float become its largest one, otherwise NaN or infinity.
BCU_ATTRS(CastAttrs, (i64, saturate))

struct Cast {};
struct FromF8 {};
struct ToF8 {};

// Two 4-bit integers to a byte.
BCU_ATTRS(Int4Attrs, (i64, is_signed))
struct PackInt4Row {};
struct UnpackInt4Row {};
inline constexpr Elements kWide = kFloats | Element::I8 | Element::U8;

inline constexpr Elements kF8 = Element::F8E4M3 | Element::F8E5M2;

// The elements are the input's and the output's.
inline constexpr auto kLocal =
    table(row<Cast>("cast").name("tiled").takes(kReal, kReal).attrs_of<CastAttrs>().exact(),
          row<FromF8>("cast").name("from_f8").takes(kF8, kReal | kF8).attrs_of<CastAttrs>().exact(),
          row<ToF8>("cast").name("to_f8").takes(kReal, kF8).attrs_of<CastAttrs>().exact(),
          row<PackInt4Row>("pack_int4").name("bytes").takes(kWide).attrs_of<Int4Attrs>().exact(),
          row<UnpackInt4Row>("unpack_int4").name("bytes").takes(kWide).attrs_of<Int4Attrs>().exact());

inline constexpr auto kTable = everywhere(kLocal);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::cast
