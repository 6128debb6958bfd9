// Operands, loops and launches of the binary ops.
#pragma once
#include <array>
#include <tuple>
#include <type_traits>

#include "core/compute.h"
#include "host/loops.h"
#include "host/stream.h"
#include "host/tile.h"
#include "ops/binary/skus.h"

namespace baracuda::binary {

// The two operands of a launch, of which at most one is absent and then is the number.
template <class Args, class C>
struct Operands {
  C number = C(0);
  Operand a, b;

  Operands(const Launch& launch, const IterationSpace& space) {
    a = one(launch, launch[Args::a], space);
    b = one(launch, launch[Args::b], space);
  }

 private:
  Operand one(const Launch& launch, const TensorView& t, const IterationSpace& space) {
    if (t.present()) return operand(t, space);
    number = scalar_as<C>(launch.scalars[Args::number]);
    return constant(&number, element_of<C>);
  }
};

template <class Op, class C>
void forward_loop(const C* const* in, C* const* out, int64_t n, const void*) {
  const C *a = in[0], *b = in[1];
  C* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = as_number<C>(Op::f(a[i], b[i]));
}

// The same where one of the two, kOnce, is one value.
template <class Op, class C, int kOnce>
void repeated_loop(const C* const* in, C* const* out, int64_t n, const void*) {
  const C *other = in[1 - kOnce], once = in[kOnce][0];
  C* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = as_number<C>(kOnce == 0 ? Op::f(once, other[i]) : Op::f(other[i], once));
}

// The same for whole lines of memory, which go past the caches.
template <class Op, class C>
void streamed_loop(const C* const* in, C* const* out, int64_t n, const void*) {
  constexpr int64_t kValues = kStreamLine / sizeof(C);
  const C *a = in[0], *b = in[1];
  C* y = out[0];
  for (int64_t i = 0; i < n; i += kValues) {
    alignas(kStreamLine) C line[kValues];
    for (int64_t j = 0; j < kValues; ++j) line[j] = as_number<C>(Op::f(a[i + j], b[i + j]));
    stream_line(y + i, line);
  }
}

struct Plus {
  template <class C>
  static C f(C a, C b) {
    return with_nan_of(a, Wrap<C>::add(a, b));
  }
};
struct Minus {
  template <class C>
  static C f(C a, C b) {
    return Wrap<C>::add(a, Wrap<C>::mul(C(-1), b));
  }
};
struct PowTwo {  // as Pow gives it, without asking each exponent
  template <class C>
  static C f(C a) {
    return Wrap<C>::mul(a, a);
  }
  template <class C>
  static C f(C a, C) {
    return f(a);
  }
};

// Functions of a few instructions, which reading repeated values from a buffer would take longer than.
template <class Op, class... Brief>
inline constexpr bool kAmong = (std::is_same_v<Op, Brief> || ...);
template <class Op>
inline constexpr bool kBriefValue = kAmong<Op, Plus, Minus, PowTwo, Mul, Div, Maximum, Minimum, Fmax, Fmin>;
template <class Op>
inline constexpr bool kBrief = kBriefValue<Op> || kAmong<Op, Eq, Ne, Lt, Le, Gt, Ge>;

// Pow's loop over floats, which asks for special cases once for many.
void pow_loop(const float* const* in, float* const* out, int64_t n, const void*);

template <class Op, class C>
TileLoops<C> forward_loops() {
  if constexpr (std::is_same_v<Op, Pow> && std::is_same_v<C, float>)
    return &pow_loop;
  else if constexpr (kBrief<Op>)
    return {&forward_loop<Op, C>, &repeated_loop<Op, C, 0>, &repeated_loop<Op, C, 1>, &streamed_loop<Op, C>};
  else
    return &forward_loop<Op, C>;
}

template <class Op, class C>
void backward_loop(const C* const* in, C* const* out, int64_t n, const void*) {
  const C *dy = in[0], *a = in[1], *b = in[2];
  C *da = out[0], *db = out[1];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    Grads<C> g = Op::df(dy[i], a[i], b[i]);
    da[i] = g.v[0];
    db[i] = g.v[1];
  }
}

// The same for functions that take kNumbers numbers besides.
template <class Op, class C, int kNumbers>
void numbers_loop(const C* const* in, C* const* out, int64_t n, const void* params) {
  const std::array<C, kNumbers> numbers = *static_cast<const std::array<C, kNumbers>*>(params);
  const C *a = in[0], *b = in[1];
  C* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    y[i] = as_number<C>(std::apply([&](auto... p) { return Op::f(a[i], b[i], p...); }, numbers));
  }
}

template <class Args, class C>
Status launch_forward(const Launch& launch, TileLoops<C> loops, const void* params) {
  IterationSpace space = space_of(launch[Args::y]);
  Operands<Args, C> operands(launch, space);
  const Operand in[] = {operands.a, operands.b};
  const Operand out[] = {operand(launch[Args::y], space)};
  run_tiles<C>(space, in, out, loops, params);
  return Status::Ok;
}

// The same of many halves, which are computed with in registers (sum of 64M bf16: 7.7 ms, by buffers of floats 17 ms).
// False where they are few or not all of one half type.
template <class Op, class Args>
bool run_halves(const Launch& launch) {
  constexpr int64_t kMany = 4096;
  const TensorView &a = launch[Args::a], &b = launch[Args::b], &y = launch[Args::y];
  const Element half = y.element;
  const auto suits = [half](const TensorView& t) { return !t.present() || t.element == half; };
  if (!kHalves.has(half) || y.numel() < kMany || !suits(a) || !suits(b)) return false;
  const IterationSpace space = space_of(y);
  if (a.present() && b.present()) {
    run_two_halves<Op>(half, space, operand(a, space), operand(b, space), operand(y, space));
    return true;
  }
  const float number = scalar_as<float>(launch.scalars[Args::number]);
  if (a.present())
    run_half_and_number<Op, 1>(half, space, operand(a, space), number, operand(y, space));
  else
    run_half_and_number<Op, 0>(half, space, operand(b, space), number, operand(y, space));
  return true;
}

template <class Op>
Status run_forward(const Launch& launch) {
  if constexpr (kBriefValue<Op>) {
    if (run_halves<Op, OperandArgs>(launch)) return Status::Ok;
  }
  return with_compute_type(launch.element, [&](auto c) {
    return launch_forward<OperandArgs, decltype(c)>(launch, forward_loops<Op, decltype(c)>(), nullptr);
  });
}

template <class Op>
Status run_floats(const Launch& launch) {
  if constexpr (kBriefValue<Op>) {
    if (run_halves<Op, OperandArgs>(launch)) return Status::Ok;
  }
  return with_float_type(launch.element, [&](auto c) {
    return launch_forward<OperandArgs, decltype(c)>(launch, forward_loops<Op, decltype(c)>(), nullptr);
  });
}

template <class Op>
Status run_bits(const Launch& launch) {
  using Args = OperandArgs;
  if (kSigned.has(launch.element)) return launch_forward<Args, int64_t>(launch, &forward_loop<Op, int64_t>, nullptr);
  return launch_forward<Args, uint64_t>(launch, &forward_loop<Op, uint64_t>, nullptr);
}

template <class Op>
Status run_backward(const Launch& launch) {
  using Args = OperandBackwardArgs;
  return with_float_type(launch.element, [&](auto c) {
    using C = decltype(c);
    IterationSpace space = space_of(launch[Args::dy]);
    Operands<Args, C> operands(launch, space);
    const Operand in[] = {operand(launch[Args::dy], space), operands.a, operands.b};
    const Operand out[] = {output_operand(launch[Args::da], space), output_operand(launch[Args::db], space)};
    run_tiles<C>(space, in, out, &backward_loop<Op, C>, nullptr);
    return Status::Ok;
  });
}

}  // namespace baracuda::binary
