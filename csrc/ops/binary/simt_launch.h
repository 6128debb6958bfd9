// Launches the functions of two numbers on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/binary/simt.h"
#include "ops/binary/skus.h"
#include "simt/map_launch.h"

namespace baracuda::binary {

// The operands of a launch: two consecutive tensor parameters, of which at most one is absent and then is the first
// number.
struct SimtOperands {
  simt::Input a, b;
  int numbers = 0;  // how many of the call's are operands

  SimtOperands(const Launch& launch, int first, const IterationSpace& space) {
    a = one(launch, launch[first], space);
    b = one(launch, launch[first + 1], space);
  }

 private:
  simt::Input one(const Launch& launch, const TensorView& t, const IterationSpace& space) {
    if (t.present()) return operand(t, space);
    return launch.scalars[numbers++];
  }
};

// Hands a, b and the output to `run`.
template <class Run>
Status forward(const Launch& launch, Run&& run) {
  const IterationSpace space = space_of(launch[2]);
  const SimtOperands operands(launch, 0, space);
  const simt::Input in[] = {operands.a, operands.b};
  const Operand out[] = {operand(launch[2], space)};
  return run(space, in, out);
}

inline DivisorCheck divisor_check(const Launch& launch, const IterationSpace& space) {
  const TensorView& divisor = launch[1];
  DivisorCheck check{};
  check.fault = simt::fault_of(launch);
  check.row = launch.row;
  check.tensor = divisor.present() ? 1 : -1;
  check.rank = space.rank;
  std::copy_n(space.shape, space.rank, check.shape);
  int64_t step = 1;
  for (int d = divisor.rank - 1; d >= 0; --d) {
    check.position[space.rank - divisor.rank + d] = divisor.shape[d] == 1 ? 0 : step;
    step *= divisor.shape[d];
  }
  return check;
}

// A divisor that is known to be zero is refused at once; others are found by the kernel.
inline bool divides_by_zero(const Launch& launch) {
  if (launch[1].present() || launch[2].numel() == 0) return false;
  const Scalar& divisor = launch.scalars[0];
  return !divisor.data && simt::number_of(divisor).whole == 0;
}

}  // namespace baracuda::binary

namespace baracuda {

template <class Op>
struct SimtKernel<binary::Forward<Op>> {
  static Status run(const Launch& launch) {
    return binary::forward(launch, [&](auto&... args) { return simt::map_real<Op>(launch, args...); });
  }
};
template <class Op>
struct SimtKernel<binary::Floats<Op>> {
  static Status run(const Launch& launch) {
    return binary::forward(launch, [&](auto&... args) { return simt::map_floats<Op>(launch, args...); });
  }
};
template <class Op>
struct SimtKernel<binary::Bits<Op>> {
  static Status run(const Launch& launch) {
    return binary::forward(launch, [&](auto&... args) { return simt::map_integers<Op>(launch, args...); });
  }
};

template <class Op, int kNumbers>
struct SimtKernel<binary::FloatNumbers<Op, kNumbers>> {
  static Status run(const Launch& launch) {
    const IterationSpace space = space_of(launch[2]);
    const binary::SimtOperands operands(launch, 0, space);
    simt::Input in[2 + kNumbers];
    in[0] = operands.a, in[1] = operands.b;
    for (int k = 0; k < kNumbers; ++k) in[2 + k] = launch.scalars[operands.numbers + k];
    const Operand out[] = {operand(launch[2], space)};
    return simt::map_floats<Op>(launch, space, in, out);
  }
};

template <>
struct SimtKernel<binary::Neighbours> {
  static Status run(const Launch& launch) {
    const IterationSpace space = space_of(launch[2]);
    const binary::SimtOperands operands(launch, 0, space);
    Scalar element;
    element.f = binary::neighbours_of(launch.element);
    const simt::Input in[] = {operands.a, operands.b, element};
    const Operand out[] = {operand(launch[2], space)};
    return simt::map_floats<binary::Nextafter>(launch, space, in, out);
  }
};

template <class Op>
struct SimtKernel<binary::Divisions<Op>> {
  static Status run(const Launch& launch) {
    if (!is_float(launch.element) && binary::divides_by_zero(launch)) {
      if (launch.failure) *launch.failure = {-1, 0, 0, 0};
      return Status::IntegerDivision;
    }
    return binary::forward(launch, [&](const IterationSpace& space, auto& in, auto& out) {
      if (is_float(launch.element)) return simt::map_floats<Op>(launch, space, in, out);
      const binary::DivisorCheck check = binary::divisor_check(launch, space);
      return simt::map_integers<binary::Checked<Op>>(launch, space, in, out, check);
    });
  }
};

template <class Op>
struct SimtKernel<binary::Backward<Op>> {
  static Status run(const Launch& launch) {
    const IterationSpace space = space_of(launch[0]);
    const binary::SimtOperands operands(launch, 1, space);
    const simt::Input in[] = {operand(launch[0], space), operands.a, operands.b};
    const Operand out[] = {output_operand(launch[3], space), output_operand(launch[4], space)};
    return simt::map_floats<Gradient<Op>>(launch, space, in, out);
  }
};

// The numbers of a call: an operand, if one is a number, then alpha.
template <int kSign>
struct SimtKernel<binary::Sum<kSign>> {
  static Status run(const Launch& launch) {
    const IterationSpace space = space_of(launch[2]);
    const binary::SimtOperands operands(launch, 0, space);
    const simt::Input in[] = {operands.a, operands.b, launch.scalars[operands.numbers]};
    const Operand out[] = {operand(launch[2], space)};
    return simt::map_real<binary::AddSigned<kSign>>(launch, space, in, out);
  }
};
template <int kSign>
struct SimtKernel<binary::SumBackward<kSign>> {
  static Status run(const Launch& launch) {
    const IterationSpace space = space_of(launch[0]);
    const simt::Input in[] = {operand(launch[0], space), launch.scalars[0]};
    const Operand out[] = {output_operand(launch[1], space), output_operand(launch[2], space)};
    return simt::map_floats<Gradient<binary::AddSigned<kSign>>>(launch, space, in, out);
  }
};

}  // namespace baracuda
