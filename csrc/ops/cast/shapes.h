// What conversions ask of their tensors.
#pragma once
#include "core/shapes.h"
#include "ops/cast/skus.h"

namespace baracuda::cast {

inline void cast_shapes(Shapes& s) {
  const auto x = s.in(Args::x);
  s.out(Args::y, s.aux()).is(x);
  s.flag(s.attrs<CastAttrs>().saturate, "saturate");
}
inline void pack_shapes(Shapes& s) {
  const auto x = s.in(Args::x).ranks(1, kMaxRank);
  s.out(Args::y, Element::U8).is(x.sizes().lead(1).then(x.at(-1) / 2 + x.at(-1) % 2));
  s.flag(s.attrs<Int4Attrs>().is_signed, "is_signed");
}
inline void unpack_shapes(Shapes& s) {
  const auto y = s.out(Args::y).ranks(1, kMaxRank);
  s.in(Args::x, Element::U8).is(y.sizes().lead(1).then(y.at(-1) / 2 + y.at(-1) % 2));
  s.flag(s.attrs<Int4Attrs>().is_signed, "is_signed");
}

inline ShapeRule shapes_of(const Row& row) {
  const std::string_view op = row.op;
  return op == "pack_int4" ? pack_shapes : op == "unpack_int4" ? unpack_shapes : cast_shapes;
}

}  // namespace baracuda::cast
