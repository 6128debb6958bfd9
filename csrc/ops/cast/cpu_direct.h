// Casts from integers and bool, and from floats to integers, whose elements lie one behind the other.
#pragma once
#include "core/launch.h"

namespace baracuda::cast {

// Whether it has written y; not for other elements and layouts, which the tile driver takes.
bool convert_direct(const TensorView& x, const TensorView& y);

}  // namespace baracuda::cast
