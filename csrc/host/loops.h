// 1-D loops for the tile driver, made from a function of one element's values, and their launch. Where every operand
// is stored in one half type, a fused loop can read and write the halves themselves: conversion is then a few
// operations in registers, not passes over L1 buffers. That is one more instance per half type, so only for ops where
// a benchmark shows that it pays.
#pragma once
#include <concepts>
#include <cstring>
#include <span>
#include <utility>

#include "baracuda/math/trig.h"
#include "core/values.h"
#include "host/halves.h"
#include "host/tile.h"

namespace baracuda {

namespace loops {

// One result as several are.
template <class C>
inline Values<C, 1> as_values(C v) {
  return {{v}};
}
template <class C, int N>
inline Values<C, N> as_values(Values<C, N> v) {
  return v;
}

template <int... I>
using Ints = std::integer_sequence<int, I...>;
template <int N>
using UpTo = std::make_integer_sequence<int, N>;

template <class F, class C, int... I, int... O>
inline void element_loop(const C* const* in, C* const* out, int64_t n, Ints<I...>, Ints<O...>) {
  const C* const from[] = {in[I]...};
  C* const to[] = {out[O]...};
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const Values<C, sizeof...(O)> r = as_values(F::f(from[I][i]...));
    ((to[O][i] = r.v[O]), ...);
  }
}

// What the loops over halves compute: f(x...), and for functions of one value that give the same bits sooner where it
// is near 0, near(x), or of_bf16(x), whose bits are the same when they are rounded to bf16.
template <class F>
struct Of {
  auto operator()(std::convertible_to<float> auto... x) const { return as_values(F::f(x...)); }
  float near(float x) const
    requires requires { F::f_near(x); }
  {
    return F::f_near(x);
  }
  float of_bf16(float x) const
    requires requires { F::f_bf16(x); }
  {
    return F::f_bf16(x);
  }
};
// F of two values, of which kOnce is one value for all.
template <class F, int kOnce>
struct Beside {
  float once;
  auto operator()(float other) const { return as_values(kOnce == 0 ? F::f(once, other) : F::f(other, once)); }
};
template <class F>
inline constexpr bool kHasNear = requires(const F& f) { f.near(0.0f); };
template <class F>
inline constexpr bool kHasBf16 = requires(const F& f) { f.of_bf16(0.0f); };

// Two neighbouring halves of memory, which is aligned to one.
typedef uint32_t HalfPair __attribute__((may_alias, aligned(2)));

// Two bf16 at a time as the halves of a word: no packing, and every operation works on 32-bit lanes.
template <class F, int... I, int... O>
inline void bf16_pairs(F f, const uint16_t* const* in, uint16_t* const* out, int64_t pairs, Ints<I...>, Ints<O...>) {
  const HalfPair* const from[] = {reinterpret_cast<const HalfPair*>(in[I])...};
  HalfPair* const to[] = {reinterpret_cast<HalfPair*>(out[O])...};
#pragma GCC ivdep
  for (int64_t i = 0; i < pairs; ++i) {
    const Values<float, sizeof...(O)> low = f(float_of(from[I][i] << 16)...);
    const Values<float, sizeof...(O)> high = f(float_of(from[I][i] & 0xffff0000u)...);
    ((to[O][i] = (rounded_to_bf16(low.v[O]) >> 16) | (rounded_to_bf16(high.v[O]) & 0xffff0000u)), ...);
  }
}

// Blocks that the compiler keeps in registers and L1: conversion by instructions that it does not use by itself (F16C,
// AVX-512, AVX512_BF16).
inline constexpr int kHalfBlock = 32;

struct F16Block {
  static constexpr bool kPairs = false, kBf16 = false;
  static float one(uint16_t h) { return f16_to_float(h); }
  static void load(const uint16_t* h, float* x) { f16_to_float(h, x, kHalfBlock); }
  static void store(const float* x, uint16_t* h) { float_to_f16(x, h, kHalfBlock); }
};
struct Bf16Block {
  static constexpr bool kPairs = !BCU_LEVEL_BF16, kBf16 = BCU_LEVEL_BF16;
  static float one(uint16_t h) { return bf16_to_float(h); }
  static void load(const uint16_t* h, float* x) { bf16_to_float(h, x, kHalfBlock); }
  static void store(const float* x, uint16_t* h) { float_to_bf16(x, h, kHalfBlock); }
};

inline bool all_near(const float* x) {
  int32_t is_far = 0;
  for (int j = 0; j < kHalfBlock; ++j) is_far |= math::is_near(x[j]) ? 0 : 1;
  return !is_far;
}

template <class Half, class F, int... I, int... O>
inline void half_block(F f, const uint16_t* const* in, uint16_t* const* out, Ints<I...>, Ints<O...>) {
  alignas(64) float x[sizeof...(I)][kHalfBlock], y[sizeof...(O)][kHalfBlock];
  (Half::load(in[I], x[I]), ...);
  if constexpr (Half::kBf16 && kHasBf16<F>) {
    if (all_near(x[0])) {
      for (int j = 0; j < kHalfBlock; ++j) y[0][j] = f.of_bf16(x[0][j]);
      return Half::store(y[0], out[0]);
    }
  } else if constexpr (kHasNear<F>) {
    if (all_near(x[0])) {
      for (int j = 0; j < kHalfBlock; ++j) y[0][j] = f.near(x[0][j]);
      return Half::store(y[0], out[0]);
    }
  }
  for (int j = 0; j < kHalfBlock; ++j) {
    const Values<float, sizeof...(O)> r = f(x[I][j]...);
    ((y[O][j] = r.v[O]), ...);
  }
  (Half::store(y[O], out[O]), ...);
}

template <class F, int kIn, int kOut, class C>
void of_elements(const C* const* in, C* const* out, int64_t n, const void*) {
  element_loop<F>(in, out, n, UpTo<kIn>(), UpTo<kOut>());
}

// The loops below copy what does not fill a pair or a block into one of their own.
template <int kBlock, int kIn, int kOut, class Body>
inline void run_rest(const uint16_t* const* in, uint16_t* const* out, int64_t from, int64_t n, Body&& body) {
  if (from == n) return;
  uint16_t x[kIn][kBlock] = {}, y[kOut][kBlock];
  const uint16_t* a[kIn];
  uint16_t* b[kOut];
  for (int k = 0; k < kIn; ++k) std::memcpy(x[k], in[k] + from, (n - from) * 2), a[k] = x[k];
  for (int k = 0; k < kOut; ++k) b[k] = y[k];
  body(a, b);
  for (int k = 0; k < kOut; ++k) std::memcpy(out[k] + from, y[k], (n - from) * 2);
}

template <class Half, int kIn, int kOut, class F>
inline void of_blocks(F f, const uint16_t* const* in, uint16_t* const* out, int64_t n) {
  const auto block = [f](const uint16_t* const* a, uint16_t* const* b) {
    half_block<Half>(f, a, b, UpTo<kIn>(), UpTo<kOut>());
  };
  int64_t i = 0;
  for (; i + kHalfBlock <= n; i += kHalfBlock) {
    const uint16_t* a[kIn];
    uint16_t* b[kOut];
    for (int k = 0; k < kIn; ++k) a[k] = in[k] + i;
    for (int k = 0; k < kOut; ++k) b[k] = out[k] + i;
    block(a, b);
  }
  run_rest<kHalfBlock, kIn, kOut>(in, out, i, n, block);
}

template <class Half, int kIn, int kOut, class F>
inline void of_halves(F f, const uint16_t* const* in, uint16_t* const* out, int64_t n) {
  if constexpr (!Half::kPairs || kHasNear<F>) return of_blocks<Half, kIn, kOut>(f, in, out, n);
  bf16_pairs(f, in, out, n / 2, UpTo<kIn>(), UpTo<kOut>());
  run_rest<2, kIn, kOut>(in, out, n / 2 * 2, n, [f](const uint16_t* const* a, uint16_t* const* b) {
    bf16_pairs(f, a, b, 1, UpTo<kIn>(), UpTo<kOut>());
  });
}

template <class Half, class F, int kIn, int kOut>
void half_loop(const uint16_t* const* in, uint16_t* const* out, int64_t n, const void*) {
  of_halves<Half, kIn, kOut>(Of<F>(), in, out, n);
}
// Where of two inputs kOnce is one value along the run, or a number that is given beside the one input.
template <class Half, class F, int kOnce>
void repeated_half_loop(const uint16_t* const* in, uint16_t* const* out, int64_t n, const void*) {
  of_halves<Half, 1, 1>(Beside<F, kOnce>{Half::one(in[kOnce][0])}, in + 1 - kOnce, out, n);
}
template <class Half, class F, int kOnce>
void number_half_loop(const uint16_t* const* in, uint16_t* const* out, int64_t n, const void* number) {
  of_halves<Half, 1, 1>(Beside<F, kOnce>{*static_cast<const float*>(number)}, in, out, n);
}

// The half type in which all operands are stored; Any where they differ. Outputs without data do not matter.
inline Element common_half(std::span<const Operand> inputs, std::span<const Operand> outputs) {
  const Element e = inputs[0].element;
  bool same = kHalves.has(e);
  for (const Operand& o : inputs) same &= o.element == e;
  for (const Operand& o : outputs) same &= o.element == e || !o.data;
  return same ? e : Element::Any;
}

}  // namespace loops

// Calls run(half type) for the one in which all operands are stored; false where there is none.
template <class Run>
bool with_half(Element e, Run&& run) {
  if (e == Element::BF16) return run(loops::Bf16Block()), true;
  if (e == Element::F16) return run(loops::F16Block()), true;
  return false;
}

// y = F(x...) in float or double, by fused loops where all is of one half type.
template <class F, int kIn, int kOut>
void run_elements(Element element, const IterationSpace& space, const Operand (&in)[kIn], const Operand (&out)[kOut]) {
  if (element == Element::F64)
    return run_tiles<double>(space, in, out, &loops::of_elements<F, kIn, kOut, double>, nullptr);
  const bool done = with_half(loops::common_half(in, out), [&](auto half) {
    run_half_tiles(space, in, out, &loops::half_loop<decltype(half), F, kIn, kOut>, nullptr);
  });
  if (!done) run_tiles<float>(space, in, out, &loops::of_elements<F, kIn, kOut, float>, nullptr);
}

// y = F(a, b) of halves in float, where a value that repeats along a run is read once.
template <class F>
void run_two_halves(Element half, const IterationSpace& space, const Operand& a, const Operand& b, const Operand& y) {
  with_half(half, [&](auto h) {
    using Half = decltype(h);
    const Operand in[] = {a, b};
    run_half_tiles(space, in, {&y, 1},
                   {&loops::half_loop<Half, F, 2, 1>, &loops::repeated_half_loop<Half, F, 0>,
                    &loops::repeated_half_loop<Half, F, 1>, nullptr},
                   nullptr);
  });
}
// The same where kNumber of the two is a number.
template <class F, int kNumber>
void run_half_and_number(Element half, const IterationSpace& space, const Operand& x, float number, const Operand& y) {
  with_half(half, [&](auto h) {
    run_half_tiles(space, {&x, 1}, {&y, 1}, &loops::number_half_loop<decltype(h), F, kNumber>, &number);
  });
}

}  // namespace baracuda
