// The kernels of the unary family, found by the tags of their rows.
#include "ops/unary/cpu.h"

namespace baracuda {

template <class Op>
struct CpuKernel<unary::Forward<Op>> {
  static Status run(const Launch& launch) { return unary::run_forward<Op>(launch); }
};
template <class Op>
struct CpuKernel<unary::Real<Op>> {
  static Status run(const Launch& launch) { return unary::run_real<Op>(launch); }
};
template <class Op>
struct CpuKernel<unary::Integers<Op>> {
  static Status run(const Launch& launch) { return unary::run_integers<Op>(launch); }
};
template <class Op>
struct CpuKernel<unary::Backward<Op>> {
  static Status run(const Launch& launch) { return unary::run_backward<Op>(launch); }
};

template <class Op, class Other>
struct CpuKernel<unary::Forward<unary::Either<Op, Other>>> {
  static Status run(const Launch& launch) {
    return attributes<unary::GeluAttrs>(launch).approximate ? unary::run_forward<Other>(launch)
                                                            : unary::run_forward<Op>(launch);
  }
};
template <class Op, class Other>
struct CpuKernel<unary::Backward<unary::Either<Op, Other>>> {
  static Status run(const Launch& launch) {
    return attributes<unary::GeluAttrs>(launch).approximate ? unary::run_backward<Other>(launch)
                                                            : unary::run_backward<Op>(launch);
  }
};

template <class Op, int kNumbers>
struct CpuKernel<unary::ForwardNumbers<Op, kNumbers>> {
  static Status run(const Launch& launch) {
    return with_float_type(launch.element,
                           [&](auto c) { return unary::run_numbers<Op, decltype(c), kNumbers>(launch); });
  }
};
template <class Op, int kNumbers>
struct CpuKernel<unary::RealNumbers<Op, kNumbers>> {
  static Status run(const Launch& launch) {
    return with_compute_type(launch.element,
                             [&](auto c) { return unary::run_numbers<Op, decltype(c), kNumbers>(launch); });
  }
};
template <class Op>
struct CpuKernel<unary::Bits<Op>> {
  static Status run(const Launch& launch) {
    return with_integer_type(launch.element, [&](auto c) {
      using C = decltype(c);
      const std::array<C, 1> bits = {C(info(launch.element).bits)};
      return unary::launch_forward<Op, C>(launch, &unary::forward_numbers_loop<Op, C, 1>, &bits);
    });
  }
};
template <class Op, int kNumbers>
struct CpuKernel<unary::BackwardNumbers<Op, kNumbers>> {
  static Status run(const Launch& launch) {
    return with_float_type(launch.element, [&](auto c) {
      using C = decltype(c);
      const auto numbers = unary::numbers_of<C, kNumbers>(launch);
      return unary::launch_backward<Op, C>(launch, &unary::backward_numbers_loop<Op, C, kNumbers>, &numbers);
    });
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(unary)
