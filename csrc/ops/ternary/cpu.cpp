// The functions of three operands on the CPU.
#include <array>
#include <limits>
#include <tuple>

#include "backends/cpu/family.h"
#include "core/compute.h"
#include "core/tile.h"
#include "ops/ternary/skus.h"

namespace baracuda::ternary {
namespace {

template <class C>
void where_loop(const C* const* in, C* const* out, int64_t n, const void*) {
  const C *condition = in[0], *a = in[1], *b = in[2];
  C* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = Where::f(condition[i], a[i], b[i]);
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

// The scalars are the bounds that there are, in order.
template <class C>
Bounds<C> bounds(const Launch& launch) {
  using Limits = std::numeric_limits<C>;
  const ClampAttrs attrs = attributes<ClampAttrs>(launch);
  Bounds<C> b{Limits::has_infinity ? -Limits::infinity() : Limits::lowest(),
              Limits::has_infinity ? Limits::infinity() : Limits::max()};
  int at = 0;
  if (attrs.has_min) b.low = scalar_as<C>(launch.scalars[at++]);
  if (attrs.has_max) b.high = scalar_as<C>(launch.scalars[at]);
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
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) dx[i] = Clamp::df(dy[i], x[i], low, high);
}

// Three consecutive tensor parameters, of which those that are absent are the next numbers of the call.
template <class C>
struct Operands {
  C values[3];
  Operand operand[3];
  int next = 0;  // how many of the call's numbers are operands

  Operands(const Launch& launch, int first, const IterationSpace& space) {
    for (int k = 0; k < 3; ++k) {
      const TensorView& t = launch[first + k];
      if (t.present()) {
        operand[k] = baracuda::operand(t, space);
        continue;
      }
      values[k] = scalar_as<C>(launch.scalars[next++]);
      operand[k] = constant(&values[k], element_of<C>);
    }
  }
};

template <class C, int kNumbers>
std::array<C, kNumbers> numbers_after(const Launch& launch, int first) {
  std::array<C, kNumbers> numbers{};
  for (int k = 0; k < kNumbers; ++k) numbers[k] = scalar_as<C>(launch.scalars[first + k]);
  return numbers;
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

// a, b, c, y
template <class Op, class C, int kNumbers>
Status run_forward(const Launch& launch) {
  IterationSpace space = space_of(launch[3]);
  const Operands<C> operands(launch, 0, space);
  const auto numbers = numbers_after<C, kNumbers>(launch, operands.next);
  const Operand out[] = {operand(launch[3], space)};
  run_tiles<C>(space, operands.operand, out, &forward_loop<Op, C, kNumbers>, &numbers);
  return Status::Ok;
}

}  // namespace
}  // namespace baracuda::ternary

namespace baracuda {

// condition, a, b, y. A number in place of a or b is the next scalar.
template <>
struct CpuKernel<ternary::WhereForward> {
  static Status run(const Launch& launch) {
    with_compute_type(launch.element, [&](auto c) {
      using C = decltype(c);
      IterationSpace space = space_of(launch[3]);
      C numbers[2];
      int next = 0;
      auto choice = [&](const TensorView& t) {
        if (t.present()) return operand(t, space);
        numbers[next] = scalar_as<C>(launch.scalars[next]);
        return constant(&numbers[next++], element_of<C>);
      };
      const Operand in[] = {operand(launch[0], space), choice(launch[1]), choice(launch[2])};
      const Operand out[] = {operand(launch[3], space)};
      run_tiles<C>(space, in, out, &ternary::where_loop<C>, nullptr);
    });
    return Status::Ok;
  }
};

// dy, condition, da, db
template <>
struct CpuKernel<ternary::WhereBackward> {
  static Status run(const Launch& launch) {
    with_float_type(launch.element, [&](auto c) {
      using C = decltype(c);
      IterationSpace space = space_of(launch[0]);
      const Operand in[] = {operand(launch[0], space), operand(launch[1], space)};
      const Operand out[] = {output_operand(launch[2], space), output_operand(launch[3], space)};
      run_tiles<C>(space, in, out, &ternary::where_backward_loop<C>, nullptr);
    });
    return Status::Ok;
  }
};

template <>
struct CpuKernel<ternary::ClampForward> {
  static Status run(const Launch& launch) {
    with_compute_type(launch.element, [&](auto c) {
      using C = decltype(c);
      const ternary::Bounds<C> limits = ternary::bounds<C>(launch);
      IterationSpace space = space_of(launch[1]);
      const Operand in[] = {operand(launch[0], space)};
      const Operand out[] = {operand(launch[1], space)};
      run_tiles<C>(space, in, out, &ternary::clamp_loop<C>, &limits);
    });
    return Status::Ok;
  }
};

// dy, x, dx
template <>
struct CpuKernel<ternary::ClampBackward> {
  static Status run(const Launch& launch) {
    with_float_type(launch.element, [&](auto c) {
      using C = decltype(c);
      const ternary::Bounds<C> limits = ternary::bounds<C>(launch);
      IterationSpace space = space_of(launch[0]);
      const Operand in[] = {operand(launch[0], space), operand(launch[1], space)};
      const Operand out[] = {operand(launch[2], space)};
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

// dy, a, b, c, da, db, dc
template <class Op, int kNumbers>
struct CpuKernel<ternary::Backward<Op, kNumbers>> {
  static Status run(const Launch& launch) {
    return with_float_type(launch.element, [&](auto c) {
      using C = decltype(c);
      IterationSpace space = space_of(launch[0]);
      const ternary::Operands<C> operands(launch, 1, space);
      const auto numbers = ternary::numbers_after<C, kNumbers>(launch, operands.next);
      const Operand in[] = {operand(launch[0], space), operands.operand[0], operands.operand[1], operands.operand[2]};
      const Operand out[] = {output_operand(launch[4], space), output_operand(launch[5], space),
                             output_operand(launch[6], space)};
      run_tiles<C>(space, in, out, &ternary::backward_loop<Op, C, kNumbers>, &numbers);
      return Status::Ok;
    });
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(ternary)
