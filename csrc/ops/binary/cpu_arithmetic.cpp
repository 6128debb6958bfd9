// Sums with a factor, products, quotients, powers, maximum and minimum.
#include "ops/binary/cpu.h"

namespace baracuda::binary {
namespace {

template <class C>
void add_loop(const C* const* in, C* const* out, int64_t n, const void*) {
  const C *a = in[0], *b = in[1];
  C* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = Wrap<C>::add(a[i], b[i]);
}

template <class C>
void sum_loop(const C* const* in, C* const* out, int64_t n, const void* params) {
  const C alpha = *static_cast<const C*>(params);
  const C *a = in[0], *b = in[1];
  C* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = AddScaled::f(a[i], b[i], alpha);
}

template <class C>
void sum_backward_loop(const C* const* in, C* const* out, int64_t n, const void* params) {
  const C alpha = *static_cast<const C*>(params);
  const C* dy = in[0];
  C *da = out[0], *db = out[1];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    Grads<C> g = AddScaled::df(dy[i], alpha);
    da[i] = g.a;
    db[i] = g.b;
  }
}

template <class C>
C signed_alpha(const Scalar& alpha, int sign) {
  const C value = scalar_as<C>(alpha);
  return sign > 0 ? value : Wrap<C>::mul(value, C(-1));
}

}  // namespace

Status run_sum(const Launch& launch, int sign) {
  return with_compute_type(launch.element, [&](auto c) {
    using C = decltype(c);
    // The scalar operand, if there is one, comes before alpha.
    const int at = launch[0].present() && launch[1].present() ? 0 : 1;
    const C alpha = signed_alpha<C>(launch.scalars[at], sign);
    return launch_forward<C>(launch, alpha == C(1) ? &add_loop<C> : &sum_loop<C>, &alpha);
  });
}

// dy, da, db: the inputs themselves do not matter.
Status run_sum_backward(const Launch& launch, int sign) {
  return with_float_type(launch.element, [&](auto c) {
    using C = decltype(c);
    const C alpha = signed_alpha<C>(launch.scalars[0], sign);
    IterationSpace space = space_of(launch[0]);
    const Operand in[] = {operand(launch[0], space)};
    const Operand out[] = {output_operand(launch[1], space), output_operand(launch[2], space)};
    run_tiles<C>(space, in, out, &sum_backward_loop<C>, &alpha);
    return Status::Ok;
  });
}

template Status run_forward<Mul>(const Launch&);
template Status run_floats<Div>(const Launch&);
template Status run_forward<Pow>(const Launch&);
template Status run_forward<Maximum>(const Launch&);
template Status run_forward<Minimum>(const Launch&);
template Status run_backward<Mul>(const Launch&);
template Status run_backward<Div>(const Launch&);
template Status run_backward<Pow>(const Launch&);
template Status run_backward<Maximum>(const Launch&);
template Status run_backward<Minimum>(const Launch&);

}  // namespace baracuda::binary
