// The loops of the unary ops and how they are launched. The ops are spread over several cpu_*.cpp to keep compile times
// short; each instantiates its share, and cpu.cpp only lists them.
#pragma once
#include "backends/cpu/family.h"
#include "core/compute.h"
#include "core/tile.h"
#include "ops/unary/skus.h"

namespace baracuda::unary {

template <class Op, class C>
void forward_loop(const C* const* in, C* const* out, int64_t n, const void*) {
  const C* x = in[0];
  C* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = Op::f(x[i]);
}

template <class Op, class C>
void backward_loop(const C* const* in, C* const* out, int64_t n, const void*) {
  const C *dy = in[0], *saved = in[1];
  C* dx = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) dx[i] = Op::df(dy[i], saved[i]);
}

// All tensors but the last are inputs of the output's shape.
template <class C, int kInputs>
Status launch_loop(const Launch& launch, TileLoop<C> loop, const void* params) {
  const TensorView& result = launch[kInputs];
  IterationSpace space = space_of(result);
  Operand in[kInputs];
  for (int k = 0; k < kInputs; ++k) in[k] = operand(launch[k], space);
  const Operand out[] = {operand(result, space)};
  run_tiles<C>(space, in, out, loop, params);
  return Status::Ok;
}

template <class Op>
Status run_forward(const Launch& launch) {
  auto run = [&](auto c) { return launch_loop<decltype(c), 1>(launch, &forward_loop<Op, decltype(c)>, nullptr); };
  if constexpr (Op::kIntegers)
    return with_compute_type(launch.element, run);
  else
    return with_float_type(launch.element, run);
}

template <class Op>
Status run_backward(const Launch& launch) {
  return with_float_type(launch.element, [&](auto c) {
    return launch_loop<decltype(c), 2>(launch, &backward_loop<Op, decltype(c)>, nullptr);
  });
}

}  // namespace baracuda::unary

#define BCU_UNARY_FORWARD(Op) template Status run_forward<Op>(const Launch&);
#define BCU_UNARY_BOTH(Op) \
  BCU_UNARY_FORWARD(Op)    \
  template Status run_backward<Op>(const Launch&);
