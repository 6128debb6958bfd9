// Convolutions and their gradients: the kernels of the table's rows.
#include "ops/conv/cpu.h"

#include <utility>

#include "backends/cpu/family.h"
#include "host/convert.h"
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

template <>
struct CpuKernel<conv::ConvNorm> {
  static Status run(const Launch& launch) {
    launch.element == Element::F64 ? run_as<double>(launch) : run_as<float>(launch);
    return Status::Ok;
  }

 private:
  using Args = ConvNormArgs;
  template <class C>
  static void run_as(const Launch& launch) {
    const TensorView &x = launch[Args::x], &weight = launch[Args::weight], &y = launch[Args::y];
    const Conv c = conv_of(attributes<ConvAttrs>(launch), x, weight, y);
    const int64_t channels = y.shape[1], line = padded_bytes(channels * static_cast<int64_t>(sizeof(C)));
    char* at = static_cast<char*>(launch.workspace) + room_of_pass(c, Makes::Result, sizeof(C)).bytes();
    const auto take = [&] { return reinterpret_cast<C*>(std::exchange(at, at + line)); };
    Epilogue<C> e(take(), take(), take(), take(), take());
    const auto fetch = [&](int param, C none, C* to) {
      const TensorView& t = launch[param];
      t.present() ? load<C>(t.element, t.data, t.strides[0], to, channels) : void(std::fill_n(to, channels, none));
    };
    fetch(Args::mean, 0, e.mean), fetch(Args::var, 0, e.rstd);
    fetch(Args::scale, 1, e.scale), fetch(Args::shift, 0, e.shift);
    const double eps = launch.scalars[Args::eps].as_f64();
    for (int64_t i = 0; i < channels; ++i) {
      e.rstd[i] = static_cast<C>(1 / std::sqrt(static_cast<double>(e.rstd[i]) + eps));
      e.factor[i] = e.rstd[i] * e.scale[i];
    }
    e.find_apart(channels);
    e.relu = attributes<ConvNormAttrs>(launch).relu != 0;
    run_pass<C>(c, Makes::Result, x, weight, launch[Args::bias], y, launch.workspace, &e);
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(conv)
