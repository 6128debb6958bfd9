// The kernels of this family that live in a file of their own.
#pragma once
#include "backends/cpu/family.h"
#include "ops/softmax/skus.h"

namespace baracuda {

template <>
struct CpuKernel<softmax::ScaledForward> {
  static Status run(const Launch& launch);
};
template <>
struct CpuKernel<softmax::ScaledBackward> {
  static Status run(const Launch& launch);
};

}  // namespace baracuda
