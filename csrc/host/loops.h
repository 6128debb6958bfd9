// 1-D loops for the tile driver, made from a function of one element's values, and their launch. Where every operand
// is stored in one half type, a fused loop can read and write the halves themselves: conversion is then a few
// operations in registers, not passes over L1 buffers. That is one more instance per half type, so only for ops where
// a benchmark shows that it pays.
#pragma once
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

// Two neighbouring halves of memory, which is aligned to one.
typedef uint32_t HalfPair __attribute__((may_alias, aligned(2)));

// Two bf16 at a time as the halves of a word: no packing, and every operation works on 32-bit lanes.
template <class F, int... I, int... O>
inline void bf16_pairs(const uint16_t* const* in, uint16_t* const* out, int64_t pairs, Ints<I...>, Ints<O...>) {
  const HalfPair* const from[] = {reinterpret_cast<const HalfPair*>(in[I])...};
  HalfPair* const to[] = {reinterpret_cast<HalfPair*>(out[O])...};
#pragma GCC ivdep
  for (int64_t i = 0; i < pairs; ++i) {
    const Values<float, sizeof...(O)> low = as_values(F::f(float_of(from[I][i] << 16)...));
    const Values<float, sizeof...(O)> high = as_values(F::f(float_of(from[I][i] & 0xffff0000u)...));
    ((to[O][i] = (rounded_to_bf16(low.v[O]) >> 16) | (rounded_to_bf16(high.v[O]) & 0xffff0000u)), ...);
  }
}

// Blocks that the compiler keeps in registers and L1: conversion by instructions that it does not use by itself (F16C,
// AVX-512, AVX512_BF16).
inline constexpr int kHalfBlock = 32;

struct F16Block {
  static void load(const uint16_t* h, float* x) { f16_to_float(h, x, kHalfBlock); }
  static void store(const float* x, uint16_t* h) { float_to_f16(x, h, kHalfBlock); }
};
struct Bf16Block {
  static void load(const uint16_t* h, float* x) { bf16_to_float(h, x, kHalfBlock); }
  static void store(const float* x, uint16_t* h) { float_to_bf16(x, h, kHalfBlock); }
};

// Functions of one value that give the same bits sooner where it is near 0.
template <class F>
inline constexpr bool kHasNear = requires(float x) { F::f_near(x); };
inline bool all_near(const float* x) {
  int32_t is_far = 0;
  for (int j = 0; j < kHalfBlock; ++j) is_far |= math::is_near(x[j]) ? 0 : 1;
  return !is_far;
}

template <class Half, class F, int... I, int... O>
inline void half_block(const uint16_t* const* in, uint16_t* const* out, Ints<I...>, Ints<O...>) {
  alignas(64) float x[sizeof...(I)][kHalfBlock], y[sizeof...(O)][kHalfBlock];
  (Half::load(in[I], x[I]), ...);
  if constexpr (kHasNear<F>) {
    if (all_near(x[0])) {
      for (int j = 0; j < kHalfBlock; ++j) y[0][j] = F::f_near(x[0][j]);
      return Half::store(y[0], out[0]);
    }
  }
  for (int j = 0; j < kHalfBlock; ++j) {
    const Values<float, sizeof...(O)> r = as_values(F::f(x[I][j]...));
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

template <class Half, class F, int kIn, int kOut>
void of_blocks(const uint16_t* const* in, uint16_t* const* out, int64_t n) {
  const auto block = [](const uint16_t* const* a, uint16_t* const* b) {
    half_block<Half, F>(a, b, UpTo<kIn>(), UpTo<kOut>());
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

template <class F, int kIn, int kOut>
void of_bf16(const uint16_t* const* in, uint16_t* const* out, int64_t n, const void*) {
  constexpr bool kBlocks = BCU_LEVEL_BF16 || kHasNear<F>;
  if constexpr (kBlocks) return of_blocks<Bf16Block, F, kIn, kOut>(in, out, n);
  bf16_pairs<F>(in, out, n / 2, UpTo<kIn>(), UpTo<kOut>());
  run_rest<2, kIn, kOut>(in, out, n / 2 * 2, n,
                         [](auto a, auto b) { bf16_pairs<F>(a, b, 1, UpTo<kIn>(), UpTo<kOut>()); });
}

template <class F, int kIn, int kOut>
void of_f16(const uint16_t* const* in, uint16_t* const* out, int64_t n, const void*) {
  of_blocks<F16Block, F, kIn, kOut>(in, out, n);
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

// y = F(x...) in float or double, by fused loops where all is of one half type.
template <class F, int kIn, int kOut>
void run_elements(Element element, const IterationSpace& space, const Operand (&in)[kIn], const Operand (&out)[kOut]) {
  if (element == Element::F64)
    return run_tiles<double>(space, in, out, &loops::of_elements<F, kIn, kOut, double>, nullptr);
  switch (loops::common_half(in, out)) {
    case Element::BF16:
      return run_half_tiles(space, in, out, &loops::of_bf16<F, kIn, kOut>, nullptr);
    case Element::F16:
      return run_half_tiles(space, in, out, &loops::of_f16<F, kIn, kOut>, nullptr);
    default:
      return run_tiles<float>(space, in, out, &loops::of_elements<F, kIn, kOut, float>, nullptr);
  }
}

}  // namespace baracuda
