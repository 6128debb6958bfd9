// The kernels of this family that live in a file of their own.
#pragma once
#include "backends/cpu/family.h"
#include "ops/rope/skus.h"

namespace baracuda {

// cpu_norm.cpp
template <>
struct CpuKernel<rope::NormRotate> {
  static Status run(const Launch& launch);
};
template <>
struct CpuKernel<rope::NormRotateBackward> {
  static Status run(const Launch& launch);
};

}  // namespace baracuda
