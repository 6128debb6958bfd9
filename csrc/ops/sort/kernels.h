// Kernels of this family that have files of their own.
#pragma once
#include "core/launch.h"

namespace baracuda::sort {

Status search(const Launch& launch);
void unique(const Launch& launch, bool sorted);

}  // namespace baracuda::sort
