// The kernels of all families that a device module is made of, by the list that its build writes.
#pragma once
#include "core/backend.h"

#define BCU_FAMILY(name, slice)                 \
  namespace baracuda::name {                    \
  extern const FamilyKernels kSimtSlice##slice; \
  }
#include "simt_families.inc"
#undef BCU_FAMILY

namespace baracuda::simt {

#define BCU_FAMILY(name, slice) &baracuda::name::kSimtSlice##slice,
inline constexpr const FamilyKernels* kFamilies[] = {
#include "simt_families.inc"
};
#undef BCU_FAMILY

}  // namespace baracuda::simt
