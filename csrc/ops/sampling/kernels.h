// The kernels of this family that live in a file of their own.
#pragma once
#include "backends/cpu/family.h"
#include "ops/sampling/skus.h"

namespace baracuda {

template <>
struct CpuKernel<sampling::Verify> {  // cpu_draft.cpp
  static Status run(const Launch& launch);
};
template <>
struct CpuKernel<sampling::VerifyTree> {  // cpu_draft.cpp
  static Status run(const Launch& launch);
};

}  // namespace baracuda
