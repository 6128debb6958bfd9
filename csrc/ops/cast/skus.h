// The SKU table of element conversion.
#pragma once
#include "core/row.h"

namespace baracuda::cast {

// saturate: numbers beyond an 8-bit float become its largest one, otherwise NaN or infinity.
BCU_ATTRS(CastAttrs, (i64, saturate))
BCU_ARGS(Args, (x, y), ())

struct Cast {};
struct FromF8 {};
struct ToF8 {};

// Two 4-bit integers to a byte.
BCU_ATTRS(Int4Attrs, (i64, is_signed))
struct PackInt4Row {};
struct UnpackInt4Row {};
inline constexpr Elements kWide = kFloats | Element::I8 | Element::U8;

inline constexpr Elements kF8 = Element::F8E4M3 | Element::F8E5M2;

template <class Tag, class Attrs>
constexpr auto base(const char* op) {
  return row<Tag>(op).template args_of<Args>().template attrs_of<Attrs>().exact();
}

// The elements are the input's and the output's.
inline constexpr auto kLocal =
    table(base<Cast, CastAttrs>("cast").name("tiled").takes(kReal, kReal),
          base<FromF8, CastAttrs>("cast").name("from_f8", "simt_from_f8").takes(kF8, kReal | kF8),
          base<ToF8, CastAttrs>("cast").name("to_f8", "simt_to_f8").takes(kReal, kF8),
          base<PackInt4Row, Int4Attrs>("pack_int4").name("bytes").takes(kWide),
          base<UnpackInt4Row, Int4Attrs>("unpack_int4").name("bytes").takes(kWide));

inline constexpr auto kTable = everywhere(kLocal);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::cast
