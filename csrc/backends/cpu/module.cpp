// The one exported entry of a CPU level's module: the kernels of its families, compiled for that level. A family that
// is compiled in slices is there once per slice.
#include "backends/cpu/module.h"

#define BCU_FAMILY(name, slice)                            \
  namespace baracuda::name {                               \
  extern const ::baracuda::FamilyKernels kCpuSlice##slice; \
  }
#include "level_families.inc"
#undef BCU_FAMILY

namespace baracuda {
namespace {

#define BCU_FAMILY(name, slice) &name::kCpuSlice##slice,
constexpr const FamilyKernels* kFamilies[] = {
#include "level_families.inc"
};
#undef BCU_FAMILY
constexpr CpuModule kModule = {kModuleAbi, BCU_CPU_LEVEL_NAME, kFamilies, sizeof kFamilies / sizeof *kFamilies,
                               BCU_CPU_LEVEL_COMPLETE};

}  // namespace
}  // namespace baracuda

extern "C" BCU_API const baracuda::CpuModule* baracuda_cpu_module() { return &baracuda::kModule; }
