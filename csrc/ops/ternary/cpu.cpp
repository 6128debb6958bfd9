// The functions of three operands on the CPU.
#include <array>
#include <limits>
#include <tuple>

#include "backends/cpu/family.h"
#include "core/compute.h"
#include "host/tile.h"
#include "host/whole_lines.h"
#include "ops/ternary/skus.h"

namespace baracuda::ternary {
namespace {

template <class C>
void where_loop(const C* const* in, C* const* out, int64_t n, const void*) {
  const C *condition = in[0], *a = in[1], *b = in[2];
  C* y = out[0];
  choose_each(n, [=](int64_t i, C a_i, C b_i) { y[i] = Where::f(condition[i], a_i, b_i); }, a, b);
}

template <class C>
void where_backward_loop(const C* const* in, C* const* out, int64_t n, const void*) {
  const C *dy = in[0], *condition = in[1];
  C *da = out[0], *db = out[1];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const Values<C, 2> g = Where::df(dy[i], condition[i]);
    da[i] = g.v[0];
    db[i] = g.v[1];
  }
}

template <class C>
struct Bounds {
  C low, high;
};

template <class Args, class C>
Bounds<C> bounds(const Launch& launch) {
  using Limits = std::numeric_limits<C>;
  const ClampAttrs attrs = attributes<ClampAttrs>(launch);
  Bounds<C> b{Limits::has_infinity ? -Limits::infinity() : Limits::lowest(),
              Limits::has_infinity ? Limits::infinity() : Limits::max()};
  if (attrs.has_min) b.low = scalar_as<C>(launch.scalars[Args::min]);
  if (attrs.has_max) b.high = scalar_as<C>(launch.scalars[Args::max]);
  return b;
}

template <class C>
void clamp_loop(const C* const* in, C* const* out, int64_t n, const void* params) {
  const auto [low, high] = *static_cast<const Bounds<C>*>(params);
  const C* x = in[0];
  C* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = Clamp::f(x[i], low, high);
}

template <class C>
void clamp_backward_loop(const C* const* in, C* const* out, int64_t n, const void* params) {
  const auto [low, high] = *static_cast<const Bounds<C>*>(params);
  const C *dy = in[0], *x = in[1];
  C* dx = out[0];
  choose_each(n, [=, low = low, high = high](int64_t i, C dy_i) { dx[i] = Clamp::df(dy_i, x[i], low, high); }, dy);
}

// A tensor or, where it is absent, the number in its place, which `kept` then holds.
template <class C>
Operand operand_or(const TensorView& t, const Scalar& number, C& kept, const IterationSpace& space) {
  if (t.present()) return operand(t, space);
  kept = scalar_as<C>(number);
  return constant(&kept, element_of<C>);
}

template <class Args, class C>
struct Operands {
  C numbers[2];
  Operand a, b, c;

  Operands(const Launch& launch, const IterationSpace& space)
      : a(operand(launch[Args::a], space)),
        b(operand_or(launch[Args::b], launch.scalars[Args::b_number], numbers[0], space)),
        c(operand_or(launch[Args::c], launch.scalars[Args::c_number], numbers[1], space)) {}
};

// What a function takes besides its operands.
template <class Args, class C, int kNumbers>
std::array<C, kNumbers> numbers_of(const Launch& launch) {
  if constexpr (kNumbers == 0)
    return {};
  else
    return {scalar_as<C>(launch.scalars[Args::value])};
}

template <class Op, class C, int kNumbers>
void forward_loop(const C* const* in, C* const* out, int64_t n, const void* params) {
  const std::array<C, kNumbers> numbers = *static_cast<const std::array<C, kNumbers>*>(params);
  const C *a = in[0], *b = in[1], *c = in[2];
  C* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = std::apply([&](auto... p) { return Op::f(a[i], b[i], c[i], p...); }, numbers);
}

template <class Op, class C, int kNumbers>
void backward_loop(const C* const* in, C* const* out, int64_t n, const void* params) {
  const std::array<C, kNumbers> numbers = *static_cast<const std::array<C, kNumbers>*>(params);
  const C *dy = in[0], *a = in[1], *b = in[2], *c = in[3];
  C *da = out[0], *db = out[1], *dc = out[2];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const Values<C, 3> g = std::apply([&](auto... p) { return Op::df(dy[i], a[i], b[i], c[i], p...); }, numbers);
    da[i] = g.v[0];
    db[i] = g.v[1];
    dc[i] = g.v[2];
  }
}

template <class Op, class C, int kNumbers>
Status run_forward(const Launch& launch) {
  using Args = ForwardArgs<kNumbers>;
  IterationSpace space = space_of(launch[Args::y]);
  const Operands<Args, C> operands(launch, space);
  const auto numbers = numbers_of<Args, C, kNumbers>(launch);
  const Operand in[] = {operands.a, operands.b, operands.c};
  const Operand out[] = {operand(launch[Args::y], space)};
  run_tiles<C>(space, in, out, &forward_loop<Op, C, kNumbers>, &numbers);
  return Status::Ok;
}

}  // namespace
}  // namespace baracuda::ternary

namespace baracuda {

template <>
struct CpuKernel<ternary::WhereForward> {
  static Status run(const Launch& launch) {
    using Args = ternary::WhereArgs;
    with_compute_type(launch.element, [&](auto c) {
      using C = decltype(c);
      IterationSpace space = space_of(launch[Args::y]);
      C a, b;
      const Operand in[] = {operand(launch[Args::condition], space),
                            ternary::operand_or(launch[Args::a], launch.scalars[Args::a_number], a, space),
                            ternary::operand_or(launch[Args::b], launch.scalars[Args::b_number], b, space)};
      const Operand out[] = {operand(launch[Args::y], space)};
      run_tiles<C>(space, in, out, &ternary::where_loop<C>, nullptr);
    });
    return Status::Ok;
  }
};

template <>
struct CpuKernel<ternary::WhereBackward> {
  static Status run(const Launch& launch) {
    using Args = ternary::WhereBackwardArgs;
    with_float_type(launch.element, [&](auto c) {
      using C = decltype(c);
      IterationSpace space = space_of(launch[Args::dy]);
      const Operand in[] = {operand(launch[Args::dy], space), operand(launch[Args::condition], space)};
      const Operand out[] = {output_operand(launch[Args::da], space), output_operand(launch[Args::db], space)};
      run_tiles<C>(space, in, out, &ternary::where_backward_loop<C>, nullptr);
    });
    return Status::Ok;
  }
};

template <>
struct CpuKernel<ternary::ClampForward> {
  static Status run(const Launch& launch) {
    using Args = ternary::ClampArgs;
    with_compute_type(launch.element, [&](auto c) {
      using C = decltype(c);
      const ternary::Bounds<C> limits = ternary::bounds<Args, C>(launch);
      IterationSpace space = space_of(launch[Args::y]);
      const Operand in[] = {operand(launch[Args::x], space)};
      const Operand out[] = {operand(launch[Args::y], space)};
      run_tiles<C>(space, in, out, &ternary::clamp_loop<C>, &limits);
    });
    return Status::Ok;
  }
};

template <>
struct CpuKernel<ternary::ClampBackward> {
  static Status run(const Launch& launch) {
    using Args = ternary::ClampBackwardArgs;
    with_float_type(launch.element, [&](auto c) {
      using C = decltype(c);
      const ternary::Bounds<C> limits = ternary::bounds<Args, C>(launch);
      IterationSpace space = space_of(launch[Args::dy]);
      const Operand in[] = {operand(launch[Args::dy], space), operand(launch[Args::x], space)};
      const Operand out[] = {operand(launch[Args::dx], space)};
      run_tiles<C>(space, in, out, &ternary::clamp_backward_loop<C>, &limits);
    });
    return Status::Ok;
  }
};

template <class Op, int kNumbers>
struct CpuKernel<ternary::Forward<Op, kNumbers>> {
  static Status run(const Launch& launch) {
    return with_float_type(launch.element,
                           [&](auto c) { return ternary::run_forward<Op, decltype(c), kNumbers>(launch); });
  }
};
template <class Op, int kNumbers>
struct CpuKernel<ternary::Reals<Op, kNumbers>> {
  static Status run(const Launch& launch) {
    return with_compute_type(launch.element,
                             [&](auto c) { return ternary::run_forward<Op, decltype(c), kNumbers>(launch); });
  }
};

template <class Op, int kNumbers>
struct CpuKernel<ternary::Backward<Op, kNumbers>> {
  static Status run(const Launch& launch) {
    using Args = ternary::BackwardArgs<kNumbers>;
    return with_float_type(launch.element, [&](auto c) {
      using C = decltype(c);
      IterationSpace space = space_of(launch[Args::dy]);
      const ternary::Operands<Args, C> operands(launch, space);
      const auto numbers = ternary::numbers_of<Args, C, kNumbers>(launch);
      const Operand in[] = {operand(launch[Args::dy], space), operands.a, operands.b, operands.c};
      const Operand out[] = {output_operand(launch[Args::da], space), output_operand(launch[Args::db], space),
                             output_operand(launch[Args::dc], space)};
      run_tiles<C>(space, in, out, &ternary::backward_loop<Op, C, kNumbers>, &numbers);
      return Status::Ok;
    });
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(ternary)
