// Launches the functions of one number on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/unary/simt.h"
#include "ops/unary/skus.h"
#include "simt/map_launch.h"

namespace baracuda::unary {

// The tensors of a launch that are read, all its numbers, and the result.
template <int kNumbers, int kResult, int... kTensors>
struct SimtOperands {
  enum : int { kRead = sizeof...(kTensors) };
  IterationSpace space;
  simt::Input in[kRead + kNumbers];
  Operand out[1];

  explicit SimtOperands(const Launch& launch)
      : space(space_of(launch[kResult])),
        in{operand(launch[kTensors], space)...},
        out{operand(launch[kResult], space)} {
    for (int k = 0; k < kNumbers; ++k) in[kRead + k] = launch.scalars[k];
  }
};

// Hands them to `run`.
template <class Op, int kNumbers = 0, class Run>
Status on_forward(const Launch& launch, Run&& run) {
  using Args = ForwardArgs<Op>;
  const SimtOperands<kNumbers, Args::y, Args::x> operands(launch);
  return run(operands.space, operands.in, operands.out);
}
template <class Op, int kNumbers = 0, class Run>
Status on_backward(const Launch& launch, Run&& run) {
  using Args = BackwardArgs<Op>;
  const SimtOperands<kNumbers, Args::dx, Args::dy, kSaved<Op>> operands(launch);
  return run(operands.space, operands.in, operands.out);
}

template <class Op>
Status forward(const Launch& launch) {
  return on_forward<Op>(launch, [&](auto&... args) { return simt::map_floats<Op>(launch, args...); });
}
template <class Op>
Status backward(const Launch& launch) {
  return on_backward<Op>(launch, [&](auto&... args) { return simt::map_floats<Gradient<Op>>(launch, args...); });
}

}  // namespace baracuda::unary

namespace baracuda {

template <class Op>
struct SimtKernel<unary::Forward<Op>> {
  static Status run(const Launch& launch) { return unary::forward<Op>(launch); }
};
template <class Op>
struct SimtKernel<unary::Backward<Op>> {
  static Status run(const Launch& launch) { return unary::backward<Op>(launch); }
};
template <class Op>
struct SimtKernel<unary::Real<Op>> {
  static Status run(const Launch& launch) {
    return unary::on_forward<Op>(launch, [&](auto&... args) { return simt::map_real<Op>(launch, args...); });
  }
};
template <class Op>
struct SimtKernel<unary::Integers<Op>> {
  static Status run(const Launch& launch) {
    return unary::on_forward<Op>(launch, [&](auto&... args) { return simt::map_integers<Op>(launch, args...); });
  }
};

template <class Op, class Other>
struct SimtKernel<unary::Forward<unary::Either<Op, Other>>> {
  static Status run(const Launch& launch) {
    return attributes<unary::GeluAttrs>(launch).approximate ? unary::forward<Other>(launch)
                                                            : unary::forward<Op>(launch);
  }
};
template <class Op, class Other>
struct SimtKernel<unary::Backward<unary::Either<Op, Other>>> {
  static Status run(const Launch& launch) {
    return attributes<unary::GeluAttrs>(launch).approximate ? unary::backward<Other>(launch)
                                                            : unary::backward<Op>(launch);
  }
};

template <class Op, int kNumbers>
struct SimtKernel<unary::ForwardNumbers<Op, kNumbers>> {
  static Status run(const Launch& launch) {
    return unary::on_forward<Op, kNumbers>(launch,
                                           [&](auto&... args) { return simt::map_floats<Op>(launch, args...); });
  }
};
template <class Op, int kNumbers>
struct SimtKernel<unary::RealNumbers<Op, kNumbers>> {
  static Status run(const Launch& launch) {
    return unary::on_forward<Op, kNumbers>(launch, [&](auto&... args) { return simt::map_real<Op>(launch, args...); });
  }
};
template <class Op>
struct SimtKernel<unary::Bits<Op>> {
  static Status run(const Launch& launch) {
    using Args = unary::ForwardArgs<Op>;
    Scalar bits;
    bits.kind = Scalar::Kind::Int, bits.i = info(launch.element).bits;
    const IterationSpace space = space_of(launch[Args::y]);
    const simt::Input in[] = {operand(launch[Args::x], space), bits};
    const Operand out[] = {operand(launch[Args::y], space)};
    return simt::map_integers<Op>(launch, space, in, out);
  }
};
template <class Op, int kNumbers>
struct SimtKernel<unary::BackwardNumbers<Op, kNumbers>> {
  static Status run(const Launch& launch) {
    return unary::on_backward<Op, kNumbers>(
        launch, [&](auto&... args) { return simt::map_floats<Gradient<Op>>(launch, args...); });
  }
};

}  // namespace baracuda
