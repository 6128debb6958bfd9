// The kernels of this family that live in a file of their own.
#pragma once
#include "backends/cpu/family.h"
#include "ops/random/skus.h"

namespace baracuda {

// cpu_rejection.cpp
template <class Draw>
struct CpuKernel<random::Rejection<Draw>> {
  static Status run(const Launch& launch);
};

// cpu_discrete.cpp, cpu_multinomial.cpp
#define BCU_RANDOM_KERNEL(Tag)               \
  template <>                                \
  struct CpuKernel<random::Tag> {            \
    static Status run(const Launch& launch); \
  };
BCU_RANDOM_KERNEL(Bernoulli)
BCU_RANDOM_KERNEL(Randint)
BCU_RANDOM_KERNEL(Randperm)
BCU_RANDOM_KERNEL(Dropout)
BCU_RANDOM_KERNEL(DropoutBackward)
BCU_RANDOM_KERNEL(Multinomial)
#undef BCU_RANDOM_KERNEL

}  // namespace baracuda
