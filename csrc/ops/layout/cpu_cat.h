// Short rows of several tensors, one behind the other.
#pragma once
#include "core/launch.h"

namespace baracuda::layout {

// False, having done nothing, where the rows are long, not dense, or too many lie in one.
bool cat_short_rows(const Launch& launch);

}  // namespace baracuda::layout
