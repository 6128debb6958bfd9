// The kernels of this family that live in a file of their own.
#pragma once
#include "backends/cpu/family.h"
#include "ops/loss/skus.h"

namespace baracuda {

// cpu_regression.cpp, cpu_entropy.cpp
template <class Loss>
struct CpuKernel<loss::Pointwise<Loss>> {
  static Status run(const Launch& launch);
};
template <class Loss>
struct CpuKernel<loss::PointwiseBackward<Loss>> {
  static Status run(const Launch& launch);
};

// cpu_targets.cpp; cpu_ctc.cpp; of linear layers cpu_linear.cpp
#define BCU_LOSS_KERNEL(Tag)                 \
  template <>                                \
  struct CpuKernel<loss::Tag> {              \
    static Status run(const Launch& launch); \
  };
BCU_LOSS_KERNEL(Probabilities)
BCU_LOSS_KERNEL(ProbabilitiesBackward)
BCU_LOSS_KERNEL(Nll)
BCU_LOSS_KERNEL(NllBackward)
BCU_LOSS_KERNEL(Ctc)
BCU_LOSS_KERNEL(CtcBackward)
BCU_LOSS_KERNEL(LinearCrossEntropy)
BCU_LOSS_KERNEL(LinearCrossEntropyBackward)
BCU_LOSS_KERNEL(LinearCrossEntropyRounded)
BCU_LOSS_KERNEL(LinearCrossEntropyRoundedBackward)
#undef BCU_LOSS_KERNEL

}  // namespace baracuda
