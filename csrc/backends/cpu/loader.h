// Opens the modules of the best CPU level this machine has, once.
#pragma once
#include <vector>

#include "backends/cpu/module.h"
#include "core/registry.h"

namespace baracuda {

struct CpuBackend {
  BackendState state;
  // Best level first. v4x holds only the families that gain from its instructions; the others are v4's.
  std::vector<const CpuModule*> modules;
};
const CpuBackend& cpu_backend();

}  // namespace baracuda
