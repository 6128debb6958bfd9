// Opens the module of the best CPU level this machine has, once.
#pragma once
#include "backends/cpu/module.h"
#include "core/registry.h"

namespace baracuda {

struct CpuBackend {
  BackendState state;
  const CpuModule* module = nullptr;
};
const CpuBackend& cpu_backend();

}  // namespace baracuda
