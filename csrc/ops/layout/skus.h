// The SKU table of data movement.
#pragma once
#include "core/row.h"

namespace baracuda::layout {

// Of whatever is made of one tensor without a number.
BCU_ARGS(MoveArgs, (x, y), ())
BCU_ARGS(MoveBackwardArgs, (dy, dx), ())
BCU_ARGS(FillArgs, (y), (value))
BCU_ARGS(ArangeArgs, (y), (start, step))
BCU_ARGS(LinspaceArgs, (y), (start, end))
BCU_ARGS(EyeArgs, (y), ())
BCU_ARGS(ListArgs, (tensors, y), ())
BCU_ATTRS(ListAttrs, (i64, axis))
// A bit per axis.
BCU_ATTRS(FlipAttrs, (i64, axes))
// How far each axis is rolled; any integer.
BCU_ATTRS(RollAttrs, (i64, shift0), (i64, shift1), (i64, shift2), (i64, shift3), (i64, shift4), (i64, shift5),
          (i64, shift6), (i64, shift7))
// The value is given in constant mode only.
BCU_ARGS(PadArgs, (x, y), (value))
// low: elements added before each axis, negative ones are cut off; those added behind follow from the sizes.
BCU_ATTRS(PadAttrs, (i64, mode), (i64, low0), (i64, low1), (i64, low2), (i64, low3), (i64, low4), (i64, low5),
          (i64, low6), (i64, low7))
// each: elements are repeated one by one instead of the whole.
BCU_ATTRS(RepeatAttrs, (i64, each))
BCU_ATTRS(DiagonalAttrs, (i64, diagonal))
// start: where the slice starts, along the axis.
BCU_ARGS(SliceArgs, (x, source, y), (start))
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

template <class Tag, class Args = MoveArgs>
constexpr auto moved(const char* op) {
  return row<Tag>(op).name("blocks").takes(kWhole).exact().template args_of<Args>();
}
template <class Tag>
constexpr auto summed(const char* op) {
  return row<Tag>(op).backward().name("rows").takes(kFloats).template args_of<MoveBackwardArgs>().sum(1);
}

inline constexpr auto kLocal =
    table(row<Copy>("copy").name("tiled").takes(kWhole).args_of<MoveArgs>().in_place().exact(),
          row<Fill>("fill").name("tiled").takes(kReal).args_of<FillArgs>().exact(),
          moved<Cat, ListArgs>("cat").attrs_of<ListAttrs>(), moved<Stack, ListArgs>("stack").attrs_of<ListAttrs>(),
          moved<Flip>("flip").attrs_of<FlipAttrs>(), moved<Roll>("roll").attrs_of<RollAttrs>(),
          moved<Pad, PadArgs>("pad").takes(kReal | Element::C64 | Element::C128).attrs_of<PadAttrs>(),
          summed<PadBackward>("pad").attrs_of<PadAttrs>(), moved<Repeat>("repeat").attrs_of<RepeatAttrs>(),
          summed<RepeatBackward>("repeat").attrs_of<RepeatAttrs>(),
          moved<Triangle<false>>("tril").name("rows").attrs_of<DiagonalAttrs>().in_place(),
          moved<Triangle<true>>("triu").name("rows").attrs_of<DiagonalAttrs>().in_place(),
          moved<Diag>("diag").attrs_of<DiagonalAttrs>(),
          moved<DiagBackward, MoveBackwardArgs>("diag").backward().takes(kFloats).attrs_of<DiagonalAttrs>(),
          moved<WriteSlice, SliceArgs>("write_slice").attrs_of<SliceAttrs>().in_place_of(1u << SliceArgs::x),
          row<Arange>("arange").name("tiled").takes(kNumeric).args_of<ArangeArgs>().sum(2),
          row<Linspace>("linspace").name("tiled").takes(kFloats).args_of<LinspaceArgs>().sum(3),
          row<Eye>("eye").name("blocks").takes(kReal).args_of<EyeArgs>().exact());

inline constexpr auto kTable = everywhere(kLocal);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::layout
