// Opens the modules of the best CPU level this machine has.
#pragma once
#include "backends/cpu/module.h"
#include "core/backend.h"

namespace baracuda {

// Best level first: v4x holds only the families that gain from its instructions; the others are v4's.
LoadedBackend open_cpu_backend();

}  // namespace baracuda
