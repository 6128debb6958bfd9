// Launches the functions of three operands on a GPU.
#pragma once
#include <limits>

#include "backends/simt/family.h"
#include "ops/ternary/simt.h"
#include "ops/ternary/skus.h"
#include "simt/map_launch.h"

namespace baracuda::ternary {

// The bounds of clamp, in which one that is not there is what no number lies beyond. The call's scalars are those there
// are.
struct SimtBounds {
  Scalar low, high;

  explicit SimtBounds(const Launch& launch) {
    const ClampAttrs attrs = attributes<ClampAttrs>(launch);
    if (is_float(launch.element)) {
      low.f = -std::numeric_limits<double>::infinity(), high.f = -low.f;
    } else {
      using Signed = std::numeric_limits<int64_t>;
      const bool is_signed = kSigned.has(launch.element);
      low.kind = high.kind = is_signed ? Scalar::Kind::Int : Scalar::Kind::Unsigned;
      low.i = is_signed ? Signed::min() : 0, high.u = is_signed ? uint64_t(Signed::max()) : ~uint64_t{0};
    }
    int at = 0;
    if (attrs.has_min) low = launch.scalars[at++];
    if (attrs.has_max) high = launch.scalars[at];
  }
};

// Appends three consecutive tensor parameters to the inputs, and then kNumbers numbers; those that are absent are the
// first numbers of the call.
template <int kNumbers>
void add_operands(const Launch& launch, int first, const IterationSpace& space, simt::Input* in) {
  int next = 0;
  for (int k = 0; k < 3; ++k) {
    const TensorView& t = launch[first + k];
    in[k] = t.present() ? simt::Input(operand(t, space)) : simt::Input(launch.scalars[next++]);
  }
  for (int k = 0; k < kNumbers; ++k) in[3 + k] = launch.scalars[next + k];
}

// Hands a, b, c, the numbers and y to `run`.
template <int kNumbers, class Run>
Status forward(const Launch& launch, Run&& run) {
  const IterationSpace space = space_of(launch[3]);
  simt::Input in[3 + kNumbers];
  add_operands<kNumbers>(launch, 0, space, in);
  const Operand out[] = {operand(launch[3], space)};
  return run(launch, space, in, out);
}

}  // namespace baracuda::ternary

namespace baracuda {

template <class Op, int kNumbers>
struct SimtKernel<ternary::Forward<Op, kNumbers>> {
  static Status run(const Launch& launch) {
    return ternary::forward<kNumbers>(launch, [](auto&... args) { return simt::map_floats<Op>(args...); });
  }
};
template <class Op, int kNumbers>
struct SimtKernel<ternary::Reals<Op, kNumbers>> {
  static Status run(const Launch& launch) {
    return ternary::forward<kNumbers>(launch, [](auto&... args) { return simt::map_real<Op>(args...); });
  }
};

// dy, a, b, c, da, db, dc
template <class Op, int kNumbers>
struct SimtKernel<ternary::Backward<Op, kNumbers>> {
  static Status run(const Launch& launch) {
    const IterationSpace space = space_of(launch[0]);
    simt::Input in[4 + kNumbers];
    in[0] = operand(launch[0], space);
    ternary::add_operands<kNumbers>(launch, 1, space, in + 1);
    const Operand out[] = {output_operand(launch[4], space), output_operand(launch[5], space),
                           output_operand(launch[6], space)};
    return simt::map_floats<Gradient<Op>>(launch, space, in, out);
  }
};

// condition, a, b, y. A number in place of a or b is the next scalar.
template <>
struct SimtKernel<ternary::WhereForward> {
  static Status run(const Launch& launch) {
    const IterationSpace space = space_of(launch[3]);
    int next = 0;
    auto choice = [&](const TensorView& t) {
      return t.present() ? simt::Input(operand(t, space)) : simt::Input(launch.scalars[next++]);
    };
    const simt::Input in[] = {operand(launch[0], space), choice(launch[1]), choice(launch[2])};
    const Operand out[] = {operand(launch[3], space)};
    return simt::map_real<ternary::Where>(launch, space, in, out);
  }
};

// dy, condition, da, db
template <>
struct SimtKernel<ternary::WhereBackward> {
  static Status run(const Launch& launch) {
    const IterationSpace space = space_of(launch[0]);
    const simt::Input in[] = {operand(launch[0], space), operand(launch[1], space)};
    const Operand out[] = {output_operand(launch[2], space), output_operand(launch[3], space)};
    return simt::map_floats<Gradient<ternary::Where>>(launch, space, in, out);
  }
};

template <>
struct SimtKernel<ternary::ClampForward> {
  static Status run(const Launch& launch) {
    const ternary::SimtBounds bounds(launch);
    const IterationSpace space = space_of(launch[1]);
    const simt::Input in[] = {operand(launch[0], space), bounds.low, bounds.high};
    const Operand out[] = {operand(launch[1], space)};
    return simt::map_real<ternary::Clamp>(launch, space, in, out);
  }
};

// dy, x, dx
template <>
struct SimtKernel<ternary::ClampBackward> {
  static Status run(const Launch& launch) {
    const ternary::SimtBounds bounds(launch);
    const IterationSpace space = space_of(launch[0]);
    const simt::Input in[] = {operand(launch[0], space), operand(launch[1], space), bounds.low, bounds.high};
    const Operand out[] = {operand(launch[2], space)};
    return simt::map_floats<Gradient<ternary::Clamp>>(launch, space, in, out);
  }
};

}  // namespace baracuda
