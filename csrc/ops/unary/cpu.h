// The loops of the unary ops and how they are launched.
#pragma once
#include <algorithm>
#include <array>
#include <tuple>

#include "backends/cpu/family.h"
#include "core/compute.h"
#include "host/loops.h"
#include "host/tile.h"
#include "host/whole_lines.h"
#include "ops/unary/bf16.h"
#include "ops/unary/skus.h"

namespace baracuda::unary {

// Calls near(i) for pieces of which all x[i] are near, far(i) for others.
template <class C, class Near, class Far>
inline void by_nearness(const C* x, int64_t n, Near&& near, Far&& far) {
  constexpr int64_t kPiece = 256;
  for (int64_t at = 0; at < n; at += kPiece) {
    const int64_t end = std::min(n, at + kPiece);
    int32_t is_far = 0;
    for (int64_t i = at; i < end; ++i) is_far |= math::is_near(x[i]) ? 0 : 1;
    if (is_far) {
#pragma GCC ivdep
      for (int64_t i = at; i < end; ++i) far(i);
    } else {
#pragma GCC ivdep
      for (int64_t i = at; i < end; ++i) near(i);
    }
  }
}

template <class Op, class C>
void forward_loop(const C* const* in, C* const* out, int64_t n, const void*) {
  const C* x = in[0];
  C* y = out[0];
  if constexpr (requires { Op::f_near(C()); })
    return by_nearness(x, n, [=](int64_t i) { y[i] = Op::f_near(x[i]); }, [=](int64_t i) { y[i] = Op::f(x[i]); });
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = as_number<C>(Op::f(x[i]));
}

template <class Op, class C>
void backward_loop(const C* const* in, C* const* out, int64_t n, const void*) {
  const C *dy = in[0], *saved = in[1];
  C* dx = out[0];
  if constexpr (requires { Op::df_near(C(), C()); })
    return by_nearness(
        saved, n, [=](int64_t i) { dx[i] = Op::df_near(dy[i], saved[i]); },
        [=](int64_t i) { dx[i] = Op::df(dy[i], saved[i]); });
  choose_each(n, [=](int64_t i, C dy_i) { dx[i] = Op::df(dy_i, saved[i]); }, dy);
}

// Inputs have the result's shape.
template <class C, int kResult, int... kInputs>
Status launch_loop(const Launch& launch, TileLoop<C> loop, const void* params) {
  IterationSpace space = space_of(launch[kResult]);
  const Operand in[] = {operand(launch[kInputs], space)...}, out[] = {operand(launch[kResult], space)};
  run_tiles<C>(space, in, out, loop, params);
  return Status::Ok;
}
template <class Op, class C>
Status launch_forward(const Launch& launch, TileLoop<C> loop, const void* params = nullptr) {
  using Args = ForwardArgs<Op>;
  return launch_loop<C, Args::y, Args::x>(launch, loop, params);
}
template <class Op, class C>
Status launch_backward(const Launch& launch, TileLoop<C> loop, const void* params = nullptr) {
  using Args = BackwardArgs<Op>;
  return launch_loop<C, Args::dx, Args::dy, kSaved<Op>>(launch, loop, params);
}

// Functions whose halves are worth a loop of their own: they are converted in registers (exp of 64M bf16: 14.4 ms, 19
// ms by buffers of floats).
template <class Op>
inline constexpr bool kInRegisters = false;
template <>
inline constexpr bool kInRegisters<Exp> = true;
template <>
inline constexpr bool kInRegisters<Tanh> = true;
template <>
inline constexpr bool kInRegisters<GeluTanh> = true;
template <>
inline constexpr bool kInRegisters<Sin> = true;
template <>
inline constexpr bool kInRegisters<Cos> = true;
template <>
inline constexpr bool kInRegisters<Gelu> = true;
template <>
inline constexpr bool kInRegisters<Sigmoid> = true;
template <>
inline constexpr bool kInRegisters<Square> = true;

template <class Op>
inline constexpr auto kOfBf16 = nullptr;
#if BCU_LEVEL_BF16
template <>
inline constexpr auto kOfBf16<Sin> = &sin_of_bf16;
template <>
inline constexpr auto kOfBf16<Cos> = &cos_of_bf16;
#endif

// Loops of their own over many stored bf16.
template <class Op>
inline constexpr TileLoop<uint16_t> kBf16Loop = nullptr;
#if BCU_LEVEL_BF16
template <>
inline constexpr TileLoop<uint16_t> kBf16Loop<Gelu> = &gelu_of_bf16;
#endif

template <class Op>
struct InRegisters {
  static Values<float, 1> f(float x) { return {{Op::f(x)}}; }
  static Values<double, 1> f(double x) { return {{Op::f(x)}}; }
  static float f_near(float x)
    requires requires { Op::f_near(x); }
  {
    return Op::f_near(x);
  }
  static float f_bf16(float x)
    requires(kOfBf16<Op> != nullptr)
  {
    return kOfBf16<Op>(x);
  }
};

// Functions that are a few operations on the bits of a half, whose infinity has the bits `infinity`: no conversion.
template <class Op>
struct OnBits;
template <>
struct OnBits<Neg> {
  static uint16_t f(uint16_t h, uint16_t) { return h ^ 0x8000; }
};
template <>
struct OnBits<Abs> {
  static uint16_t f(uint16_t h, uint16_t) { return h & 0x7fff; }
};
template <>
struct OnBits<Relu> {  // NaN, of either sign, has larger bits than infinity
  static uint16_t f(uint16_t h, uint16_t infinity) {
    const uint16_t positive = h < 0x8000 ? h : 0;
    return (h & 0x7fff) > infinity ? h : positive;
  }
};

template <class Op>
void bits_loop(const uint16_t* const* in, uint16_t* const* out, int64_t n, const void* params) {
  const uint16_t infinity = *static_cast<const uint16_t*>(params);
  const uint16_t* x = in[0];
  uint16_t* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = OnBits<Op>::f(x[i], infinity);
}

template <class Op>
Status run_forward(const Launch& launch) {
  if constexpr (requires { OnBits<Op>::f(0, 0); }) {
    using Args = ForwardArgs<Op>;
    if (kHalves.has(launch.element)) {
      const uint16_t infinity = launch.element == Element::BF16 ? 0x7f80 : 0x7c00;
      const IterationSpace space = space_of(launch[Args::y]);
      const Operand in[] = {operand(launch[Args::x], space)}, out[] = {operand(launch[Args::y], space)};
      run_half_tiles(space, in, out, &bits_loop<Op>, &infinity);
      return Status::Ok;
    }
  }
  if constexpr (kInRegisters<Op>) {
    using Args = ForwardArgs<Op>;
    constexpr int64_t kMany = 4096;
    if (kHalves.has(launch.element) && launch[Args::y].numel() >= kMany) {
      const IterationSpace space = space_of(launch[Args::y]);
      const Operand in[] = {operand(launch[Args::x], space)}, out[] = {operand(launch[Args::y], space)};
      if (kBf16Loop<Op> && loops::common_half(in, out) == Element::BF16) {
        run_half_tiles(space, in, out, kBf16Loop<Op>, nullptr);
        return Status::Ok;
      }
      run_elements<InRegisters<Op>>(launch.element, space, in, out);
      return Status::Ok;
    }
  }
  return with_float_type(
      launch.element, [&](auto c) { return launch_forward<Op, decltype(c)>(launch, &forward_loop<Op, decltype(c)>); });
}
template <class Op>
Status run_integers(const Launch& launch) {
  return with_integer_type(
      launch.element, [&](auto c) { return launch_forward<Op, decltype(c)>(launch, &forward_loop<Op, decltype(c)>); });
}
template <class Op>
Status run_real(const Launch& launch) {
  return is_float(launch.element) ? run_forward<Op>(launch) : run_integers<Op>(launch);
}

template <class Op>
Status run_backward(const Launch& launch) {
  return with_float_type(launch.element, [&](auto c) {
    return launch_backward<Op, decltype(c)>(launch, &backward_loop<Op, decltype(c)>);
  });
}

// The same for functions that take kNumbers numbers besides, which are the launch's scalars.
template <class Op, class C, int kNumbers>
void forward_numbers_loop(const C* const* in, C* const* out, int64_t n, const void* params) {
  const std::array<C, kNumbers> numbers = *static_cast<const std::array<C, kNumbers>*>(params);
  const C* x = in[0];
  C* y = out[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = std::apply([&](auto... p) { return Op::f(x[i], p...); }, numbers);
}

template <class Op, class C, int kNumbers>
void backward_numbers_loop(const C* const* in, C* const* out, int64_t n, const void* params) {
  const std::array<C, kNumbers> numbers = *static_cast<const std::array<C, kNumbers>*>(params);
  const C *dy = in[0], *x = in[1];
  C* dx = out[0];
  const auto at = [&](int64_t i, C dy_i) {
    dx[i] = std::apply([&](auto... p) { return Op::df(dy_i, x[i], p...); }, numbers);
  };
  choose_each(n, at, dy);
}

template <class C, int kNumbers>
std::array<C, kNumbers> numbers_of(const Launch& launch) {
  std::array<C, kNumbers> numbers;
  for (int k = 0; k < kNumbers; ++k) numbers[k] = scalar_as<C>(launch.scalars[k]);
  return numbers;
}

template <class Op, class C, int kNumbers>
Status run_numbers(const Launch& launch) {
  const std::array<C, kNumbers> numbers = numbers_of<C, kNumbers>(launch);
  return launch_forward<Op, C>(launch, &forward_numbers_loop<Op, C, kNumbers>, &numbers);
}

}  // namespace baracuda::unary
