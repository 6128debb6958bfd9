// Launches the functions of three operands on a GPU.
#pragma once
#include <limits>

#include "backends/simt/family.h"
#include "ops/ternary/simt.h"
#include "ops/ternary/skus.h"
#include "simt/map_launch.h"

namespace baracuda::ternary {

// The bounds of clamp, in which one that is not there is what no number lies beyond.
template <class Args>
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
    if (attrs.has_min) low = launch.scalars[Args::min];
    if (attrs.has_max) high = launch.scalars[Args::max];
  }
};

// A tensor or, where it is absent, the number in its place.
inline simt::Input input_or(const TensorView& t, const Scalar& number, const IterationSpace& space) {
  return t.present() ? simt::Input(operand(t, space)) : simt::Input(number);
}

// Appends a, b, c and kNumbers numbers to the inputs.
template <class Args, int kNumbers>
void add_operands(const Launch& launch, const IterationSpace& space, simt::Input* in) {
  *in++ = operand(launch[Args::a], space);
  *in++ = input_or(launch[Args::b], launch.scalars[Args::b_number], space);
  *in++ = input_or(launch[Args::c], launch.scalars[Args::c_number], space);
  if constexpr (kNumbers > 0) *in = launch.scalars[Args::value];
}

// Hands a, b, c, the numbers and y to `run`.
template <int kNumbers, class Run>
Status forward(const Launch& launch, Run&& run) {
  using Args = ForwardArgs<kNumbers>;
  const IterationSpace space = space_of(launch[Args::y]);
  simt::Input in[3 + kNumbers];
  add_operands<Args, kNumbers>(launch, space, in);
  const Operand out[] = {operand(launch[Args::y], space)};
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

template <class Op, int kNumbers>
struct SimtKernel<ternary::Backward<Op, kNumbers>> {
  static Status run(const Launch& launch) {
    using Args = ternary::BackwardArgs<kNumbers>;
    const IterationSpace space = space_of(launch[Args::dy]);
    simt::Input in[4 + kNumbers];
    in[0] = operand(launch[Args::dy], space);
    ternary::add_operands<Args, kNumbers>(launch, space, in + 1);
    const Operand out[] = {output_operand(launch[Args::da], space), output_operand(launch[Args::db], space),
                           output_operand(launch[Args::dc], space)};
    return simt::map_floats<Gradient<Op>>(launch, space, in, out);
  }
};

template <>
struct SimtKernel<ternary::WhereForward> {
  static Status run(const Launch& launch) {
    using Args = ternary::WhereArgs;
    const IterationSpace space = space_of(launch[Args::y]);
    const simt::Input in[] = {operand(launch[Args::condition], space),
                              ternary::input_or(launch[Args::a], launch.scalars[Args::a_number], space),
                              ternary::input_or(launch[Args::b], launch.scalars[Args::b_number], space)};
    const Operand out[] = {operand(launch[Args::y], space)};
    return simt::map_real<ternary::Where>(launch, space, in, out);
  }
};

template <>
struct SimtKernel<ternary::WhereBackward> {
  static Status run(const Launch& launch) {
    using Args = ternary::WhereBackwardArgs;
    const IterationSpace space = space_of(launch[Args::dy]);
    const simt::Input in[] = {operand(launch[Args::dy], space), operand(launch[Args::condition], space)};
    const Operand out[] = {output_operand(launch[Args::da], space), output_operand(launch[Args::db], space)};
    return simt::map_floats<Gradient<ternary::Where>>(launch, space, in, out);
  }
};

template <>
struct SimtKernel<ternary::ClampForward> {
  static Status run(const Launch& launch) {
    using Args = ternary::ClampArgs;
    const ternary::SimtBounds<Args> bounds(launch);
    const IterationSpace space = space_of(launch[Args::y]);
    const simt::Input in[] = {operand(launch[Args::x], space), bounds.low, bounds.high};
    const Operand out[] = {operand(launch[Args::y], space)};
    return simt::map_real<ternary::Clamp>(launch, space, in, out);
  }
};

template <>
struct SimtKernel<ternary::ClampBackward> {
  static Status run(const Launch& launch) {
    using Args = ternary::ClampBackwardArgs;
    const ternary::SimtBounds<Args> bounds(launch);
    const IterationSpace space = space_of(launch[Args::dy]);
    const simt::Input in[] = {operand(launch[Args::dy], space), operand(launch[Args::x], space), bounds.low,
                              bounds.high};
    const Operand out[] = {operand(launch[Args::dx], space)};
    return simt::map_floats<Gradient<ternary::Clamp>>(launch, space, in, out);
  }
};

}  // namespace baracuda
