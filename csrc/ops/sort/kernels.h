// Kernels of this family that have files of their own.
#pragma once
#include "core/launch.h"

namespace baracuda::sort {

Status search(const Launch& launch);

}  // namespace baracuda::sort
