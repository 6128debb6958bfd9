// Launches the functions of one number on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/unary/simt.h"
#include "ops/unary/skus.h"
#include "simt/map_launch.h"

namespace baracuda::unary {

// The first kTensors tensors and kNumbers numbers of a launch, and the tensor after them as the output.
template <int kTensors, int kNumbers>
struct SimtOperands {
  IterationSpace space;
  simt::Input in[kTensors + kNumbers];
  Operand out[1];

  explicit SimtOperands(const Launch& launch)
      : space(space_of(launch[kTensors])), out{operand(launch[kTensors], space)} {
    for (int k = 0; k < kTensors; ++k) in[k] = operand(launch[k], space);
    for (int k = 0; k < kNumbers; ++k) in[kTensors + k] = launch.scalars[k];
  }
};

// Hands them to `run`.
template <int kTensors, int kNumbers = 0, class Run>
Status on_simt(const Launch& launch, Run&& run) {
  const SimtOperands<kTensors, kNumbers> operands(launch);
  return run(operands.space, operands.in, operands.out);
}

template <class Op>
Status forward(const Launch& launch) {
  return on_simt<1>(launch, [&](auto&... args) { return simt::map_floats<Op>(launch, args...); });
}
template <class Op>
Status backward(const Launch& launch) {
  return on_simt<2>(launch, [&](auto&... args) { return simt::map_floats<Gradient<Op>>(launch, args...); });
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
    return unary::on_simt<1>(launch, [&](auto&... args) { return simt::map_real<Op>(launch, args...); });
  }
};
template <class Op>
struct SimtKernel<unary::Integers<Op>> {
  static Status run(const Launch& launch) {
    return unary::on_simt<1>(launch, [&](auto&... args) { return simt::map_integers<Op>(launch, args...); });
  }
};

template <class Op, class Other>
struct SimtKernel<unary::Forward<unary::Either<Op, Other>>> {
  static Status run(const Launch& launch) {
    return launch.attrs[0] ? unary::forward<Other>(launch) : unary::forward<Op>(launch);
  }
};
template <class Op, class Other>
struct SimtKernel<unary::Backward<unary::Either<Op, Other>>> {
  static Status run(const Launch& launch) {
    return launch.attrs[0] ? unary::backward<Other>(launch) : unary::backward<Op>(launch);
  }
};

template <class Op, int kNumbers>
struct SimtKernel<unary::ForwardNumbers<Op, kNumbers>> {
  static Status run(const Launch& launch) {
    return unary::on_simt<1, kNumbers>(launch, [&](auto&... args) { return simt::map_floats<Op>(launch, args...); });
  }
};
template <class Op, int kNumbers>
struct SimtKernel<unary::RealNumbers<Op, kNumbers>> {
  static Status run(const Launch& launch) {
    return unary::on_simt<1, kNumbers>(launch, [&](auto&... args) { return simt::map_real<Op>(launch, args...); });
  }
};
template <class Op>
struct SimtKernel<unary::Bits<Op>> {
  static Status run(const Launch& launch) {
    Scalar bits;
    bits.kind = Scalar::Kind::Int, bits.i = info(launch.element).bits;
    const IterationSpace space = space_of(launch[1]);
    const simt::Input in[] = {operand(launch[0], space), bits};
    const Operand out[] = {operand(launch[1], space)};
    return simt::map_integers<Op>(launch, space, in, out);
  }
};
template <class Op, int kNumbers>
struct SimtKernel<unary::BackwardNumbers<Op, kNumbers>> {
  static Status run(const Launch& launch) {
    return unary::on_simt<2, kNumbers>(launch,
                                       [&](auto&... args) { return simt::map_floats<Gradient<Op>>(launch, args...); });
  }
};

}  // namespace baracuda
