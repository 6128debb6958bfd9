// The SKU table of element conversion.
#pragma once
#include "core/row.h"

namespace baracuda::cast {

struct Cast {};

// The elements are the input's and the output's.
inline constexpr auto kTable = table(row<Cast>("cast").name("tiled").takes(kReal, kReal).exact());

inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::cast
