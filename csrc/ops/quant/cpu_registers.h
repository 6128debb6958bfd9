// A chunk of weights whose values are found in registers while they are multiplied: from codes that were put in order,
// or, with vectors of 16 floats, by 4-bit codes that pick from the 16 values that a group can have. Values are those of
// decode.h, bit for bit.
#pragma once
#include "ops/quant/cpu_grids.h"

namespace baracuda::quant {

// each(bytes, f) calls f(k, at, values) for kWide values from position `at` on, k counting them anew now and then.
template <class Format>
struct FromBytes {
  static constexpr bool kThere = true;

  template <class F>
  [[gnu::always_inline]] void each(const uint8_t* bytes, F&& f) const {
    using B = Blocks<Format::kNumber>;
    Codes<Format, 0> codes;
    codes.read(bytes);
#pragma GCC unroll 1
    for (int first = 0; first < kChunk; first += 32) {
#pragma GCC unroll 8
      for (int v = 0; v < 32 / kWide; ++v) {
        const int at = first + v * kWide;
        Floats w = level::floats_of_signed_bytes(codes.codes + at) * codes.scales[at / B::kGroup];
        if constexpr (B::kLow != 0) w += codes.lows[at / B::kGroup];
        f(v, at, w);
      }
    }
  }
};
template <int kFormat>
struct InRegisters : FromBytes<Known<kFormat>> {};
template <>
struct InRegisters<-1> {
  static constexpr bool kThere = false;
};

#if BCU_LEVEL_EIGHTS

using level::Floats8;
typedef int32_t Lanes16 __attribute__((vector_size(64)));

[[gnu::always_inline]] inline Floats everywhere_of(Floats8 v) {
  return __builtin_shufflevector(v, v, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}
[[gnu::always_inline]] inline Floats lane_everywhere(Floats8 v, int lane) {
  typedef int32_t Lanes8 __attribute__((vector_size(32)));
  return everywhere_of(__builtin_shuffle(v, Lanes8{} + lane));
}
// Of what a byte of codes picks, the lower 4 bits count.
[[gnu::always_inline]] inline Lanes16 lanes_of(const uint8_t* codes) { return (Lanes16)level::words_of_bytes(codes); }
template <int kFormat>
Floats every_code() {
  struct Same {
    uint32_t q;
    uint32_t operator()(int) const { return q; }
  };
  Floats codes = {};
  for (uint32_t q = 0; q < 16; ++q) codes[q] = static_cast<float>(Blocks<kFormat>::code(Same{q}, 0, 0));
  return codes;
}

// Blocks of 32 whose codes follow their scale, and their minimum where there is one.
template <int kFormat, int kFirst>
struct NibblesInRegisters {
  using Format = Blocks<kFormat>;
  static constexpr bool kThere = true;
  const Floats codes = every_code<kFormat>();

  [[gnu::always_inline]] Floats values(const uint8_t* block) const {
    if constexpr (kFormat == kMXFP4) return codes * Format::scale(Bytes{block}, 0);
    Floats8 scale, low;
    level::two_halves(block, scale, low);
    const Floats steps = codes * everywhere_of(scale);
    if constexpr (Format::kLow != 0) return steps + everywhere_of(low);
    return steps;
  }
  template <class F>
  [[gnu::always_inline]] void each(const uint8_t* bytes, F&& f) const {
    for (int b = 0; b < kChunk / 32; ++b, bytes += Format::kBytes) {
      const Floats table = values(bytes);
      const Lanes16 picks = lanes_of(bytes + kFirst);
      f(0, 32 * b, __builtin_shuffle(table, picks));
      f(1, 32 * b + 16, __builtin_shuffle(table, picks >> 4));
    }
  }
};
template <>
struct InRegisters<kQ4_0> : NibblesInRegisters<kQ4_0, 2> {};
template <>
struct InRegisters<kQ4_1> : NibblesInRegisters<kQ4_1, 4> {};
template <>
struct InRegisters<kIQ4_NL> : NibblesInRegisters<kIQ4_NL, 2> {};
template <>
struct InRegisters<kMXFP4> : NibblesInRegisters<kMXFP4, 1> {};

template <>
struct InRegisters<kQ8_0> {
  static constexpr bool kThere = true;

  template <class F>
  [[gnu::always_inline]] void each(const uint8_t* bytes, F&& f) const {
    for (int b = 0; b < kChunk / 32; ++b, bytes += Blocks<kQ8_0>::kBytes) {
      Floats8 scale, rest;
      level::two_halves(bytes, scale, rest);
      const Floats step = everywhere_of(scale);
      f(0, 32 * b, level::floats_of_signed_bytes(bytes + 2) * step);
      f(1, 32 * b + 16, level::floats_of_signed_bytes(bytes + 18) * step);
    }
  }
};

template <>
struct InRegisters<kQ4_K> {
  static constexpr bool kThere = true;
  const Floats codes = every_code<kQ4_K>();

  template <class F>
  [[gnu::always_inline]] void each(const uint8_t* bytes, F&& f) const {
    Floats8 scales, lows;
    Bits<kQ4_K>::groups(bytes, scales, lows);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const Floats low = codes * lane_everywhere(scales, 2 * i) - lane_everywhere(lows, 2 * i);
      const Floats high = codes * lane_everywhere(scales, 2 * i + 1) - lane_everywhere(lows, 2 * i + 1);
      const Lanes16 first = lanes_of(bytes + 16 + 32 * i), second = lanes_of(bytes + 32 + 32 * i);
      f(0, 64 * i, __builtin_shuffle(low, first)), f(1, 64 * i + 16, __builtin_shuffle(low, second));
      f(0, 64 * i + 32, __builtin_shuffle(high, first >> 4)), f(1, 64 * i + 48, __builtin_shuffle(high, second >> 4));
    }
  }
};

#endif

}  // namespace baracuda::quant
