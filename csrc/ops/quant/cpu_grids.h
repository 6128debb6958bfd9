// The IQ and TQ formats' codes in order, eight at once: entries of their tables as bytes, and signs as masks of bytes.
#pragma once
#include "ops/quant/cpu_unpack.h"

namespace baracuda::quant {

typedef uint8_t Bytes8 __attribute__((vector_size(8)));

// What a table holds, as bytes: kWidth values of each of kCount entries.
template <int kCount, int kWidth, auto kEntry, auto kValue>
struct GridBytes {
  alignas(64) uint8_t rows[kCount][kWidth];
  GridBytes() {
    for (int n = 0; n < kCount; ++n)
      for (int i = 0; i < kWidth; ++i) rows[n][i] = static_cast<uint8_t>(kValue(kEntry(static_cast<uint32_t>(n)), i));
  }
};
inline int plain_grid_value_1(uint32_t entry, int i) { return 8 * (static_cast<int>(entry >> (2 * i) & 3u) - 1); }
inline const GridBytes<256, 8, grid_iq2_xxs, grid_value_2> kBytesIQ2_XXS;
inline const GridBytes<512, 8, grid_iq2_xs, grid_value_2> kBytesIQ2_XS;
inline const GridBytes<1024, 8, grid_iq2_s, grid_value_2> kBytesIQ2_S;
inline const GridBytes<256, 4, grid_iq3_xxs, grid_value_3> kBytesIQ3_XXS;
inline const GridBytes<512, 4, grid_iq3_s, grid_value_3s> kBytesIQ3_S;
inline const GridBytes<2048, 8, grid_iq1, plain_grid_value_1> kBytesIQ1;

// 255 where one of 8 bits is set.
[[gnu::always_inline]] inline Bytes8 mask_of(uint32_t signs) {
  const Bytes8 bits = {1, 2, 4, 8, 16, 32, 64, 128};
  const uint8_t s = static_cast<uint8_t>(signs);
  const Bytes8 all = {s, s, s, s, s, s, s, s};
  return (Bytes8)((all & bits) == bits);
}
[[gnu::always_inline]] inline Bytes8 two_fours(const uint8_t* low, const uint8_t* high) {
  uint8_t both[8];
  std::memcpy(both, low, 4), std::memcpy(both + 4, high, 4);
  return load_as<Bytes8>(both);
}
// Eight codes, kMore higher.
template <int kMore>
[[gnu::always_inline]] inline void put_signed(Bytes8 sizes, uint32_t signs, uint8_t* to) {
  const Bytes8 mask = mask_of(signs), codes = ((sizes ^ mask) - mask) + static_cast<uint8_t>(kMore);
  std::memcpy(to, &codes, sizeof codes);
}

// Scales by decode.h's own functions.
template <int kFormat, int kMost>
struct GridBits {
  static constexpr int kOffset = kMost;
  static void groups(const uint8_t* block, float* scales, float*) {
    using F = Blocks<kFormat>;
    for (int g = 0; g < 256 / F::kGroup; ++g) scales[g] = F::scale(Bytes{block}, g * (F::kGroup / 16));
  }
};

template <>
struct Bits<kIQ2_XXS> : GridBits<kIQ2_XXS, 43> {
  template <int kAbove>
  static void codes(const uint8_t* block, uint8_t* to) {
    for (int k = 0; k < 8; ++k) {
      const uint8_t* from = block + 2 + 8 * k;
      const uint32_t word = load_as<uint32_t>(from + 4);
      for (int l = 0; l < 4; ++l)
        put_signed<kOffset + kAbove>(load_as<Bytes8>(kBytesIQ2_XXS.rows[from[l]]), eight_signs(word >> 7 * l & 127u),
                                     to + 32 * k + 8 * l);
    }
  }
};
template <>
struct Bits<kIQ2_XS> : GridBits<kIQ2_XS, 43> {
  template <int kAbove>
  static void codes(const uint8_t* block, uint8_t* to) {
    for (int k = 0; k < 32; ++k) {
      const uint32_t word = load_as<uint16_t>(block + 2 + 2 * k);
      put_signed<kOffset + kAbove>(load_as<Bytes8>(kBytesIQ2_XS.rows[word & 511u]), eight_signs(word >> 9), to + 8 * k);
    }
  }
};
template <>
struct Bits<kIQ2_S> : GridBits<kIQ2_S, 43> {
  template <int kAbove>
  static void codes(const uint8_t* block, uint8_t* to) {
    for (int k = 0; k < 32; ++k) {
      const uint32_t entry = block[2 + k] | (block[66 + k / 4] >> 2 * (k % 4) & 3u) << 8;
      put_signed<kOffset + kAbove>(load_as<Bytes8>(kBytesIQ2_S.rows[entry]), block[34 + k], to + 8 * k);
    }
  }
};
template <>
struct Bits<kIQ3_XXS> : GridBits<kIQ3_XXS, 62> {
  template <int kAbove>
  static void codes(const uint8_t* block, uint8_t* to) {
    for (int k = 0; k < 32; ++k) {
      const uint32_t word = load_as<uint32_t>(block + 66 + k / 4 * 4);
      const uint8_t* from = block + 2 + 2 * k;
      put_signed<kOffset + kAbove>(two_fours(kBytesIQ3_XXS.rows[from[0]], kBytesIQ3_XXS.rows[from[1]]),
                                   eight_signs(word >> 7 * (k % 4) & 127u), to + 8 * k);
    }
  }
};
template <>
struct Bits<kIQ3_S> : GridBits<kIQ3_S, 15> {
  template <int kAbove>
  static void codes(const uint8_t* block, uint8_t* to) {
    for (int k = 0; k < 32; ++k) {
      const uint8_t* from = block + 2 + 2 * k;
      const uint32_t upper = static_cast<uint32_t>(block[66 + k / 4]) >> 2 * (k % 4);
      put_signed<kOffset + kAbove>(
          two_fours(kBytesIQ3_S.rows[from[0] | (upper & 1u) << 8], kBytesIQ3_S.rows[from[1] | (upper & 2u) << 7]),
          block[74 + k], to + 8 * k);
    }
  }
};

// Eight codes of IQ1: those of the table, and one more or less.
template <int kFormat>
struct OneBits : GridBits<kFormat, 9> {
  template <int kAbove>
  static void codes(const uint8_t* block, uint8_t* to) {
    for (int k = 0; k < 32; ++k) {
      uint32_t three;  // the entry's upper bits
      bool less;
      if constexpr (kFormat == kIQ1_S) {
        const uint32_t word = load_as<uint16_t>(block + 34 + k / 4 * 2);
        three = word >> 3 * (k % 4) & 7u, less = word >> 15 != 0u;
      } else {
        const uint32_t four = static_cast<uint32_t>(block[32 + k / 2]) >> 4 * (k % 2);
        three = four & 7u, less = (four & 8u) != 0u;
      }
      const uint32_t entry = block[(kFormat == kIQ1_S ? 2 : 0) + k] | three << 8;
      const uint8_t more = static_cast<uint8_t>(9 + kAbove + (less ? -1 : 1));
      const Bytes8 codes = load_as<Bytes8>(kBytesIQ1.rows[entry]) + more;
      std::memcpy(to + 8 * k, &codes, sizeof codes);
    }
  }
};
template <>
struct Bits<kIQ1_S> : OneBits<kIQ1_S> {};
template <>
struct Bits<kIQ1_M> : OneBits<kIQ1_M> {};

template <>
struct Bits<kIQ4_XS> : GridBits<kIQ4_XS, 128> {
  template <int kAbove>
  static void codes(const uint8_t* block, uint8_t* to) {
    for (int k = 0; k < 8; ++k) picked<kIQ4_NL, kAbove>(block + 8 + 16 * k, to + 32 * k);
  }
};

// A digit of kCount bytes, that of `power`.
template <int kMore, int kCount>
[[gnu::always_inline]] inline void digits(const uint8_t* __restrict__ from, int power, uint8_t* __restrict__ to) {
  for (int i = 0; i < kCount; ++i) {
    const uint16_t rest = static_cast<uint8_t>(from[i] * power);
    to[i] = static_cast<uint8_t>((static_cast<uint16_t>(rest * 3) >> 8) + kMore);
  }
}
template <>
struct Bits<kTQ1_0> : GridBits<kTQ1_0, 1> {
  template <int kAbove>
  static void codes(const uint8_t* __restrict__ block, uint8_t* __restrict__ to) {
    static constexpr int kPowers[] = {1, 3, 9, 27, 81};
    for (int p = 0; p < 5; ++p) digits<kAbove, 32>(block, kPowers[p], to + 32 * p);
    for (int p = 0; p < 5; ++p) digits<kAbove, 16>(block + 32, kPowers[p], to + 160 + 16 * p);
    for (int p = 0; p < 4; ++p) digits<kAbove, 4>(block + 48, kPowers[p], to + 240 + 4 * p);
  }
};
template <>
struct Bits<kTQ2_0> : GridBits<kTQ2_0, 1> {
  template <int kAbove>
  static void codes(const uint8_t* __restrict__ block, uint8_t* __restrict__ to) {
#pragma GCC unroll 8
    for (int at = 0; at < 256; at += 32) {
      const uint8_t* two = block + at / 128 * 32;
      for (int i = 0; i < 32; ++i) to[at + i] = static_cast<uint8_t>((two[i] >> at / 32 % 4 * 2 & 3) + kAbove);
    }
  }
};

}  // namespace baracuda::quant
