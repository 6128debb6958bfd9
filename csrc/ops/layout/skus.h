// The SKU table of data movement.
#pragma once
#include "core/row.h"

namespace baracuda::layout {

struct Copy {};
struct Fill {};

inline constexpr Elements kWhole = kReal | Element::C64 | Element::C128 | Element::F8E4M3 | Element::F8E5M2;

inline constexpr auto kLocal = table(row<Copy>("copy").name("tiled").takes(kWhole).in_place().exact(),
                                     row<Fill>("fill").name("tiled").takes(kReal).exact());

inline constexpr auto kTable = everywhere(kLocal);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::layout
