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
// cpu_sparse.cpp
#define BCU_SPARSE_KERNEL(Tag)               \
  template <>                                \
  struct CpuKernel<softmax::Tag> {           \
    static Status run(const Launch& launch); \
  };
BCU_SPARSE_KERNEL(SparseForward<false>)
BCU_SPARSE_KERNEL(SparseForward<true>)
BCU_SPARSE_KERNEL(SparseBackward<false>)
BCU_SPARSE_KERNEL(SparseBackward<true>)
#undef BCU_SPARSE_KERNEL

}  // namespace baracuda
