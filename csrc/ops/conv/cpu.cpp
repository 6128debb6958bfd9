// Convolutions and their gradients: the kernels of the table's rows.
#include "ops/conv/cpu.h"

#include "backends/cpu/family.h"
#include "ops/conv/skus.h"

namespace baracuda {

using namespace conv;

template <Makes kMakes>
struct CpuKernel<conv::Forward<kMakes>> {
  static Status run(const Launch& launch) {
    using Args = ConvArgs;
    const auto of = [&](int i) -> const TensorView& { return launch[i]; };
    const Conv c = forward_conv<kMakes>(attributes<ConvAttrs>(launch), of);
    run_pass(c, kMakes, launch[Args::x], launch[Args::weight], launch[Args::bias], launch[Args::y], launch.workspace);
    return Status::Ok;
  }
};

template <Makes kMakes>
struct CpuKernel<conv::Backward<kMakes>> {
  static Status run(const Launch& launch) {
    using Args = ConvBackwardArgs;
    const auto of = [&](int i) -> const TensorView& { return launch[i]; };
    const Conv c = backward_conv<kMakes>(attributes<ConvAttrs>(launch), of);
    const TensorView &dy = launch[Args::dy], &x = launch[Args::x], &weight = launch[Args::weight];
    TensorView no_bias;
    no_bias.rank = -1;
    if (launch[Args::dx].present()) run_pass(c, other(kMakes), dy, weight, no_bias, launch[Args::dx], launch.workspace);
    const bool result = kMakes == Makes::Result;
    if (launch[Args::dweight].present())
      run_filter(c, result ? x : dy, result ? dy : x, launch[Args::dweight], launch.workspace);
    if (launch[Args::dbias].present()) run_bias(dy, launch[Args::dbias]);
    return Status::Ok;
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(conv)
