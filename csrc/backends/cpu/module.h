// The contract between libbaracuda and a CPU level's module.
#pragma once
#include "backends/cpu/family.h"
#include "core/api.h"
#include "core/registry.h"

namespace baracuda {

// Raised whenever Launch, TensorView, Scalar, FamilyKernels or DeviceQueues change, so that a stale module is refused.
inline constexpr int32_t kModuleAbi = 8;

struct CpuModule {
  int32_t abi;
  const char* level;
  const FamilyKernels* const* families;
  int32_t n_families;
  bool complete;  // false: the next lower level has the other families
  const Threshold* thresholds;
  int32_t n_thresholds;
};
using CpuModuleEntry = const CpuModule* (*)();

}  // namespace baracuda

extern "C" BCU_API const baracuda::CpuModule* baracuda_cpu_module();
