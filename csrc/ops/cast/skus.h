// The SKU table of element conversion.
#pragma once
#include "core/row.h"

namespace baracuda::cast {

struct Cast {};

// The elements are the input's and the output's.
inline constexpr auto kLocal = table(row<Cast>("cast").name("tiled").takes(kReal, kReal).exact());

inline constexpr auto kTable = everywhere(kLocal);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::cast
