// What this CPU can do: instruction-set level, caches, cores. Asked once, at module selection and by `info`.
#pragma once

#include <cstdint>
#include <string>

#include "core/api.h"

namespace baracuda {

// Ordered within x86-64 and within aarch64. V4X is v4 with AVX512_VNNI and AVX512_BF16, NeonDot is Neon with dotprod,
// i8mm and bf16 of Armv8.6. Generic: below v2, or an architecture without a module of its own.
enum class CpuLevel { Generic = 0, Neon = 1, V2 = 2, V3 = 3, V4 = 4, V4X = 5, NeonDot = 6 };

// "generic", "neon", "neon_dot", "v2", "v3", "v4", "v4x": the values of BARACUDA_CPU_LEVEL and the suffixes of the ISA
// modules.
BCU_API const char* cpu_level_name(CpuLevel level) noexcept;

// The raw answers that the level follows from; apart from the query, so that tests can describe machines they do not
// have.
struct CpuidBits {
  uint32_t leaf1_ecx = 0;
  uint32_t leaf7_ebx = 0;
  uint32_t leaf7_ecx = 0;
  uint32_t leaf7_1_eax = 0;
  uint32_t ext1_ecx = 0;
  uint64_t xcr0 = 0;  // register state that the OS saves; 0 without OSXSAVE
};
BCU_API CpuidBits read_cpuid() noexcept;
BCU_API CpuLevel x86_level(const CpuidBits& bits) noexcept;

// The same for aarch64, by the words of Linux (AT_HWCAP, AT_HWCAP2).
BCU_API CpuLevel arm_level(uint64_t hwcap, uint64_t hwcap2) noexcept;

// What the hardware and the OS support, whatever the environment says.
BCU_API CpuLevel hardware_cpu_level() noexcept;

// True where kernels of `level` can run on a machine of level `hardware`.
BCU_API bool cpu_level_runs_on(CpuLevel level, CpuLevel hardware) noexcept;

// The level to use: the hardware's, or a lower one that BARACUDA_CPU_LEVEL asks for. When the variable names an unknown
// level or one that the machine lacks, `error` says so (else it is cleared) and the hardware's level is returned; the
// caller must report, not go on.
BCU_API CpuLevel best_cpu_level(std::string& error);

// CPUs in the process's affinity mask, at least 1.
BCU_API int usable_cpus() noexcept;

struct CpuInfo {
  std::string model;
  CpuLevel level = CpuLevel::Generic;  // the hardware's
  int usable_cpus = 1;
  int physical_cores = 1;  // distinct cores among the usable CPUs
  int64_t l1d_bytes = 0;   // of one instance; typical sizes where the system does not tell
  int64_t l2_bytes = 0;
  int64_t l3_bytes = 0;
};
// Read at the first call; the affinity mask is the one of that moment.
BCU_API const CpuInfo& cpu_info();

}  // namespace baracuda
