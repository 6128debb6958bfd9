// The SKU table of data movement.
#pragma once
#include "core/row.h"

namespace baracuda::layout {

// Tensors: tensors [list], y.
BCU_ATTRS(ListAttrs, (i64, axis))
// Tensors: x, y. A bit per axis.
BCU_ATTRS(FlipAttrs, (i64, axes))
// Tensors: x, y. How far each axis is rolled; any integer.
BCU_ATTRS(RollAttrs, (i64, shift0), (i64, shift1), (i64, shift2), (i64, shift3), (i64, shift4), (i64, shift5),
          (i64, shift6), (i64, shift7))
// Tensors: x, y (dy, dx). low: elements added before each axis, negative ones are cut off; those added behind follow
// from the sizes.
BCU_ATTRS(PadAttrs, (i64, mode), (i64, low0), (i64, low1), (i64, low2), (i64, low3), (i64, low4), (i64, low5),
          (i64, low6), (i64, low7))
// Tensors: x, y (dy, dx). each: elements are repeated one by one instead of the whole.
BCU_ATTRS(RepeatAttrs, (i64, each))
// Tensors: x, y.
BCU_ATTRS(DiagonalAttrs, (i64, diagonal))
// Tensors: x, source, y. Scalar: where the slice starts, along the axis.
BCU_ATTRS(SliceAttrs, (i64, axis), (i64, step))

struct Copy {};
struct Fill {};
struct Cat {};
struct Stack {};
struct Flip {};
struct Roll {};
struct Pad {};
struct PadBackward {};
struct Repeat {};
struct RepeatBackward {};
template <bool kUpper>
struct Triangle {};
struct Diag {};
struct DiagBackward {};
struct WriteSlice {};
struct Arange {};
struct Linspace {};
struct Eye {};

inline constexpr Elements kWhole = kReal | Element::C64 | Element::C128 | Element::F8E4M3 | Element::F8E5M2;

template <class Tag>
constexpr auto moved(const char* op) {
  return row<Tag>(op).name("blocks").takes(kWhole).exact();
}

inline constexpr auto kLocal = table(
    row<Copy>("copy").name("tiled").takes(kWhole).in_place().exact(),
    row<Fill>("fill").name("tiled").takes(kReal).exact(), moved<Cat>("cat").attrs_of<ListAttrs>(),
    moved<Stack>("stack").attrs_of<ListAttrs>(), moved<Flip>("flip").attrs_of<FlipAttrs>(),
    moved<Roll>("roll").attrs_of<RollAttrs>(),
    moved<Pad>("pad").takes(kReal | Element::C64 | Element::C128).attrs_of<PadAttrs>(),
    row<PadBackward>("pad").backward().name("rows").takes(kFloats).attrs_of<PadAttrs>().sum(1),
    moved<Repeat>("repeat").attrs_of<RepeatAttrs>(),
    row<RepeatBackward>("repeat").backward().name("rows").takes(kFloats).attrs_of<RepeatAttrs>().sum(1),
    moved<Triangle<false>>("tril").name("rows").attrs_of<DiagonalAttrs>().in_place(),
    moved<Triangle<true>>("triu").name("rows").attrs_of<DiagonalAttrs>().in_place(),
    moved<Diag>("diag").attrs_of<DiagonalAttrs>(),
    moved<DiagBackward>("diag").backward().takes(kFloats).attrs_of<DiagonalAttrs>(),
    moved<WriteSlice>("write_slice").attrs_of<SliceAttrs>().in_place_of(1u),
    row<Arange>("arange").name("tiled").takes(kNumeric).sum(2),
    row<Linspace>("linspace").name("tiled").takes(kFloats).sum(3), row<Eye>("eye").name("blocks").takes(kReal).exact());

inline constexpr auto kTable = everywhere(kLocal);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::layout
