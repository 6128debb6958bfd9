// The kernels of the binary family by row; the loops themselves are compiled in cpu_*.cpp.
#include "backends/cpu/family.h"
#include "ops/binary/skus.h"

namespace baracuda::binary {

template <class Op>
Status run_forward(const Launch& launch);
template <class Op>
Status run_floats(const Launch& launch);
template <class Op>
Status run_integers(const Launch& launch);
template <class Op>
Status run_bits(const Launch& launch);
template <class Op>
Status run_backward(const Launch& launch);
Status run_sum(const Launch& launch, int sign);
Status run_sum_backward(const Launch& launch, int sign);

}  // namespace baracuda::binary

namespace baracuda {

template <class Op>
struct CpuKernel<binary::Forward<Op>> {
  static Status run(const Launch& launch) { return binary::run_forward<Op>(launch); }
};
template <>
struct CpuKernel<binary::Forward<binary::Div>> {
  static Status run(const Launch& launch) { return binary::run_floats<binary::Div>(launch); }
};
template <class Op>
struct CpuKernel<binary::Integers<Op>> {
  static Status run(const Launch& launch) { return binary::run_integers<Op>(launch); }
};
template <class Op>
struct CpuKernel<binary::Bits<Op>> {
  static Status run(const Launch& launch) { return binary::run_bits<Op>(launch); }
};
template <class Op>
struct CpuKernel<binary::Backward<Op>> {
  static Status run(const Launch& launch) { return binary::run_backward<Op>(launch); }
};
template <int kSign>
struct CpuKernel<binary::Sum<kSign>> {
  static Status run(const Launch& launch) { return binary::run_sum(launch, kSign); }
};
template <int kSign>
struct CpuKernel<binary::SumBackward<kSign>> {
  static Status run(const Launch& launch) { return binary::run_sum_backward(launch, kSign); }
};

}  // namespace baracuda

BCU_CPU_FAMILY(binary)
