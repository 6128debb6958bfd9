// What the engine is given of a backend: where it stands here, and its kernels. csrc/backends finds and opens modules;
// core knows these declarations alone.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/prepare.h"

namespace baracuda {

struct DeviceModule;  // core/device.h

struct FamilyKernels {
  const char* family;
  const Kernel* kernels;  // by row index; null for rows of other backends and of other slices
  int32_t n_rows;
  const Prepare* prepare = nullptr;  // by row index, null for rows that make nothing; null where no row does
};

// A size at which a kernel changes what it does: a block, a tile, a chunk. For tests, whose cases straddle them.
struct Threshold {
  const char* family;  // "" where all families have it
  const char* name;
  int64_t value;
};

struct BackendState {
  bool built = false;
  bool present = false;
  int32_t arch = 0;    // cpu: see kModuleLevels; cuda: 80, 90
  std::string level;   // "v4"
  std::string reason;  // why it is not usable
};

// The levels of processors that modules are built for and their numbers in the table: those of this architecture come
// first, the lowest first of each. 5 has dot products of bytes and of bf16.
struct ModuleLevel {
  const char* name;
  int32_t arch;
};
inline constexpr ModuleLevel kModuleLevels[] = {
#if defined(__aarch64__)
    {"neon", 2}, {"neon_dot", 5}, {"v2", 2}, {"v3", 3}, {"v4", 4}, {"v4x", 5},
#else
    {"v2", 2}, {"v3", 3}, {"v4", 4}, {"v4x", 5}, {"neon", 2}, {"neon_dot", 5},
#endif
};

struct LoadedBackend {
  BackendState state;
  const DeviceModule* module = nullptr;  // of a backend with memory of its own, where it is built and opens
  std::vector<std::span<const FamilyKernels* const>> families;  // of each module, the best one first
  std::span<const Threshold> thresholds;
};

// Opened by the first question about it; csrc/backends/modules.cpp.
const LoadedBackend& loaded_backend(Backend backend);

}  // namespace baracuda
