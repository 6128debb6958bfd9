// The SKU table of rotary position embeddings.
#pragma once
#include "core/row.h"

namespace baracuda::rope {

// interleaved: which elements are a pair, 0 = (i, i + rotary_dim / 2), 1 = (2i, 2i + 1). Columns from rotary_dim on
// pass through.
BCU_ATTRS(RopeAttrs, (i64, interleaved), (i64, rotary_dim))

template <int kSign>
struct Rotate {};
struct Table {};

inline constexpr auto kRotations =
    table(row<Rotate<1>>("rope").name("rows").takes(kFloats).attrs_of<RopeAttrs>().sum(1).in_place(),
          row<Rotate<-1>>("rope").backward().name("rows").takes(kFloats).attrs_of<RopeAttrs>().sum(1).in_place());
// Angles in f64, or, on Metal, which has none, in pairs of floats.
inline constexpr auto kTables = table(row<Table>("rope_table").name("double").takes(kFloats).sum(1));

inline constexpr auto kTable = join(everywhere(kRotations), everywhere(kTables));
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::rope
