// Launches the functions of two numbers on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/binary/simt.h"
#include "ops/binary/skus.h"
#include "simt/map_launch.h"

namespace baracuda::binary {

// The operands of a launch, of which at most one is absent and then is the number.
template <class Args>
struct SimtOperands {
  simt::Input a, b;

  SimtOperands(const Launch& launch, const IterationSpace& space) {
    a = one(launch, launch[Args::a], space);
    b = one(launch, launch[Args::b], space);
  }

 private:
  simt::Input one(const Launch& launch, const TensorView& t, const IterationSpace& space) {
    if (t.present()) return operand(t, space);
    return launch.scalars[Args::number];
  }
};

// Hands a, b and the output to `run`.
template <class Run>
Status forward(const Launch& launch, Run&& run) {
  using Args = OperandArgs;
  const IterationSpace space = space_of(launch[Args::y]);
  const SimtOperands<Args> operands(launch, space);
  const simt::Input in[] = {operands.a, operands.b};
  const Operand out[] = {operand(launch[Args::y], space)};
  return run(space, in, out);
}

inline DivisorCheck divisor_check(const Launch& launch, const IterationSpace& space) {
  const TensorView& divisor = launch[OperandArgs::b];
  DivisorCheck check{};
  check.fault = simt::fault_of(launch);
  check.row = launch.row;
  check.tensor = divisor.present() ? launch.first[OperandArgs::b] : -1;
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
  using Args = OperandArgs;
  if (launch[Args::b].present() || launch[Args::y].numel() == 0) return false;
  const Scalar& divisor = launch.scalars[Args::number];
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

template <class Op>
struct SimtKernel<binary::Close<Op>> {
  static Status run(const Launch& launch) {
    using Args = binary::CloseArgs;
    const IterationSpace space = space_of(launch[Args::y]);
    const binary::SimtOperands<Args> operands(launch, space);
    const simt::Input in[] = {operands.a, operands.b, launch.scalars[Args::rtol], launch.scalars[Args::atol],
                              launch.scalars[Args::equal_nan]};
    const Operand out[] = {operand(launch[Args::y], space)};
    return simt::map_floats<Op>(launch, space, in, out);
  }
};

template <>
struct SimtKernel<binary::Neighbours> {
  static Status run(const Launch& launch) {
    using Args = binary::OperandArgs;
    const IterationSpace space = space_of(launch[Args::y]);
    const binary::SimtOperands<Args> operands(launch, space);
    Scalar element;
    element.f = binary::neighbours_of(launch.element);
    const simt::Input in[] = {operands.a, operands.b, element};
    const Operand out[] = {operand(launch[Args::y], space)};
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
    using Args = binary::OperandBackwardArgs;
    const IterationSpace space = space_of(launch[Args::dy]);
    const binary::SimtOperands<Args> operands(launch, space);
    const simt::Input in[] = {operand(launch[Args::dy], space), operands.a, operands.b};
    const Operand out[] = {output_operand(launch[Args::da], space), output_operand(launch[Args::db], space)};
    return simt::map_floats<Gradient<Op>>(launch, space, in, out);
  }
};

template <int kSign>
struct SimtKernel<binary::Sum<kSign>> {
  static Status run(const Launch& launch) {
    using Args = binary::SumArgs;
    const IterationSpace space = space_of(launch[Args::y]);
    const binary::SimtOperands<Args> operands(launch, space);
    const simt::Input in[] = {operands.a, operands.b, launch.scalars[Args::alpha]};
    const Operand out[] = {operand(launch[Args::y], space)};
    return simt::map_real<binary::AddSigned<kSign>>(launch, space, in, out);
  }
};
template <int kSign>
struct SimtKernel<binary::SumBackward<kSign>> {
  static Status run(const Launch& launch) {
    using Args = binary::SumBackwardArgs;
    const IterationSpace space = space_of(launch[Args::dy]);
    const simt::Input in[] = {operand(launch[Args::dy], space), launch.scalars[Args::alpha]};
    const Operand out[] = {output_operand(launch[Args::da], space), output_operand(launch[Args::db], space)};
    return simt::map_floats<Gradient<binary::AddSigned<kSign>>>(launch, space, in, out);
  }
};

}  // namespace baracuda
