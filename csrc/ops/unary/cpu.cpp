// The kernels of the unary family by row; the loops themselves are compiled in cpu_*.cpp.
#include "backends/cpu/family.h"
#include "ops/unary/skus.h"

namespace baracuda::unary {

template <class Op>
Status run_forward(const Launch& launch);
template <class Op>
Status run_backward(const Launch& launch);
Status run_gelu(const Launch& launch);
Status run_gelu_backward(const Launch& launch);
Status run_softplus(const Launch& launch);
Status run_softplus_backward(const Launch& launch);

}  // namespace baracuda::unary

namespace baracuda {

template <class Op>
struct CpuKernel<unary::Forward<Op>> {
  static Status run(const Launch& launch) { return unary::run_forward<Op>(launch); }
};
template <class Op>
struct CpuKernel<unary::Backward<Op>> {
  static Status run(const Launch& launch) { return unary::run_backward<Op>(launch); }
};
template <>
struct CpuKernel<unary::GeluForward> {
  static Status run(const Launch& launch) { return unary::run_gelu(launch); }
};
template <>
struct CpuKernel<unary::GeluBackward> {
  static Status run(const Launch& launch) { return unary::run_gelu_backward(launch); }
};
template <>
struct CpuKernel<unary::SoftplusForward> {
  static Status run(const Launch& launch) { return unary::run_softplus(launch); }
};
template <>
struct CpuKernel<unary::SoftplusBackward> {
  static Status run(const Launch& launch) { return unary::run_softplus_backward(launch); }
};

}  // namespace baracuda

BCU_CPU_FAMILY(unary)
