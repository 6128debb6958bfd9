// The SKU table of the random fills.
#pragma once
#include "core/row.h"

namespace baracuda::random {

// Scalars: (low, high) or (mean, std), then seed and offset. No attributes.
struct Uniform {};
struct Normal {};

inline constexpr auto kLocal = table(row<Uniform>("uniform").name("philox").takes(kFloats).exact(),
                                     row<Normal>("normal").name("philox").takes(kFloats).sum(6));

inline constexpr auto kTable = everywhere(kLocal);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::random
