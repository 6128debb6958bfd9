// Opens the modules of the best CPU level this machine has.
#pragma once
#include "backends/cpu/module.h"
#include "core/backend.h"

namespace baracuda {

// The levels that modules are built for, lowest first, and their numbers in the table.
struct ModuleLevel {
  const char* name;
  int32_t arch;
};
inline constexpr ModuleLevel kModuleLevels[] = {{"neon", 2}, {"v2", 2}, {"v3", 3}, {"v4", 4}, {"v4x", 5}};

// Best level first: v4x holds only the families that gain from its instructions; the others are v4's.
LoadedBackend open_cpu_backend();

}  // namespace baracuda
