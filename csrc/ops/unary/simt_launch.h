// Launches the functions of one number on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/unary/simt.h"
#include "ops/unary/skus.h"
#include "simt/map_launch.h"

namespace baracuda::unary {

// Hands the first kTensors tensors and kNumbers numbers to `run`, with the tensor after them as the output.
template <int kTensors, int kNumbers = 0, class Run>
Status on_simt(const Launch& launch, Run&& run) {
  IterationSpace space = space_of(launch[kTensors]);
  simt::Input in[kTensors + kNumbers];
  for (int k = 0; k < kTensors; ++k) in[k] = operand(launch[k], space);
  for (int k = 0; k < kNumbers; ++k) in[kTensors + k] = launch.scalars[k];
  const Operand out[] = {operand(launch[kTensors], space)};
  return run(space, in, out);
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
