// The sigmoid and what is made from it; softplus has two run-time numbers.
#include "ops/unary/cpu.h"

namespace baracuda::unary {

BCU_UNARY_BOTH(Sigmoid)
BCU_UNARY_BOTH(Silu)

namespace {

template <class C>
struct SoftplusNumbers {
  C beta, threshold;
};

template <class C>
void softplus_loop(const C* const* in, C* const* out, int64_t n, const void* params) {
  const auto [beta, threshold] = *static_cast<const SoftplusNumbers<C>*>(params);
  const C* x = in[0];
  C* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = Softplus::f(x[i], beta, threshold);
}

template <class C>
void softplus_backward_loop(const C* const* in, C* const* out, int64_t n, const void* params) {
  const auto [beta, threshold] = *static_cast<const SoftplusNumbers<C>*>(params);
  const C *dy = in[0], *x = in[1];
  C* dx = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) dx[i] = Softplus::df(dy[i], x[i], beta, threshold);
}

template <class C>
SoftplusNumbers<C> numbers(const Launch& launch) {
  return {scalar_as<C>(launch.scalars[0]), scalar_as<C>(launch.scalars[1])};
}

}  // namespace

Status run_softplus(const Launch& launch) {
  return with_float_type(launch.element, [&](auto c) {
    using C = decltype(c);
    const SoftplusNumbers<C> p = numbers<C>(launch);
    return launch_loop<C, 1>(launch, &softplus_loop<C>, &p);
  });
}

Status run_softplus_backward(const Launch& launch) {
  return with_float_type(launch.element, [&](auto c) {
    using C = decltype(c);
    const SoftplusNumbers<C> p = numbers<C>(launch);
    return launch_loop<C, 2>(launch, &softplus_backward_loop<C>, &p);
  });
}

}  // namespace baracuda::unary
