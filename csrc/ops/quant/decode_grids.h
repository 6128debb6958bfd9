// The values of GGUF's IQ and TQ formats, as decode.h has those of the others: 256 values in a block, signed integers
// times the scale of their group. IQ1, IQ2 and IQ3 find a few values at once in a table, and their signs in bits.
// Portable.
#pragma once
#include "ops/quant/decode.h"
#include "ops/quant/grids.h"

namespace baracuda::quant {

template <class B>
BCU_FN uint32_t word_of_2(B b, int at) {
  return b(at) | b(at + 1) << 8;
}
template <class B>
BCU_FN uint32_t word_of_4(B b, int at) {
  return word_of_2(b, at) | word_of_2(b, at + 2) << 16;
}
// 4 bits, two to a byte.
template <class B>
BCU_FN int half_byte(B b, int at, int k) {
  return int(b(at + (k >> 1)) >> (4 * (k & 1)) & 15u);
}
// 8 signs by 7 bits: the last is that which makes their number even.
BCU_FN uint32_t eight_signs(uint32_t seven) {
  uint32_t odd = seven ^ seven >> 4;
  odd ^= odd >> 2;
  return seven | ((odd ^ odd >> 1) & 1u) << 7;
}
BCU_FN int signed_by(uint32_t signs, int i, int size) { return (signs >> i & 1u) != 0u ? -size : size; }

// Value i of an entry of 8 or 4.
BCU_FN int grid_value_2(uint32_t entry, int i) {
  uint32_t code = entry >> (2 * i) & 3u;
  return code == 0u ? 8 : code == 1u ? 25 : 43;
}
BCU_FN int grid_value_3(uint32_t entry, int i) {
  int code = int(entry >> (4 * i) & 15u);
  return code == 7 ? 62 : 8 * code + 4;
}
BCU_FN int grid_value_3s(uint32_t entry, int i) { return 2 * int(entry >> (4 * i) & 15u) + 1; }
// Eight times -1, 0 or 1 and an eighth.
BCU_FN int grid_value_1(uint32_t entry, int i, bool less) {
  return 8 * (int(entry >> (2 * i) & 3u) - 1) + (less ? -1 : 1);
}

#define BCU_GRID_256(bytes, group)                                        \
  enum : int { kBytes = bytes, kValues = 256, kGroup = group, kLow = 0 }; \
  template <class B>                                                      \
  BCU_FN float low(B, int) {                                              \
    return 0.0f;                                                          \
  }

template <>
struct Blocks<kIQ2_XXS> {
  BCU_GRID_256(66, 32)
  template <class B>
  BCU_FN float scale(B b, int g) {
    return half_at(b, 0) * (0.5f + float(int(b(9 + 8 * (g >> 1)) >> 4))) * 0.25f;
  }
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    int at = 2 + 8 * (g >> 1), k = 2 * (g & 1) + (i >> 3);
    uint32_t signs = eight_signs(word_of_4(b, at + 4) >> (7 * k) & 127u);
    return signed_by(signs, i & 7, grid_value_2(grid_iq2_xxs(b(at + k)), i & 7));
  }
};
template <>
struct Blocks<kIQ2_XS> {
  BCU_GRID_256(74, 16)
  template <class B>
  BCU_FN float scale(B b, int g) {
    return half_at(b, 0) * (0.5f + float(half_byte(b, 66, g))) * 0.25f;
  }
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    uint32_t word = word_of_2(b, 2 + 2 * (2 * g + (i >> 3)));
    return signed_by(eight_signs(word >> 9), i & 7, grid_value_2(grid_iq2_xs(word & 511u), i & 7));
  }
};
template <>
struct Blocks<kIQ2_S> {
  BCU_GRID_256(82, 16)
  template <class B>
  BCU_FN float scale(B b, int g) {
    return half_at(b, 0) * (0.5f + float(half_byte(b, 74, g))) * 0.25f;
  }
  template <class B>
  BCU_FN uint32_t entry(B b, int k) {
    return grid_iq2_s(b(2 + k) | (b(66 + (k >> 2)) >> (2 * (k & 3)) & 3u) << 8);
  }
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    int k = 2 * g + (i >> 3);
    return signed_by(b(34 + k), i & 7, grid_value_2(entry(b, k), i & 7));
  }
};
template <>
struct Blocks<kIQ3_XXS> {
  BCU_GRID_256(98, 32)
  template <class B>
  BCU_FN float scale(B b, int g) {
    return half_at(b, 0) * (0.5f + float(int(b(69 + 4 * (g >> 1)) >> 4))) * 0.5f;
  }
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    int k = 2 * (g & 1) + (i >> 3);
    uint32_t signs = eight_signs(word_of_4(b, 66 + 4 * (g >> 1)) >> (7 * k) & 127u);
    return signed_by(signs, i & 7, grid_value_3(grid_iq3_xxs(b(2 + 4 * g + (i >> 2))), i & 3));
  }
};
template <>
struct Blocks<kIQ3_S> {
  BCU_GRID_256(110, 32)
  template <class B>
  BCU_FN float scale(B b, int g) {
    return half_at(b, 0) * float(1 + 2 * half_byte(b, 106, g >> 1));
  }
  template <class B>
  BCU_FN uint32_t entry(B b, int k) {
    return grid_iq3_s(b(2 + k) | (b(66 + (k >> 3)) >> (k & 7) & 1u) << 8);
  }
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    return signed_by(b(74 + 2 * g + (i >> 3)), i & 7, grid_value_3s(entry(b, 4 * g + (i >> 2)), i & 3));
  }
};
// Values are integers times an eighth.
template <>
struct Blocks<kIQ1_S> {
  BCU_GRID_256(50, 32)
  template <class B>
  BCU_FN float scale(B b, int g) {
    return half_at(b, 0) * float(2 * int(b(35 + 2 * (g >> 1)) >> 4 & 7u) + 1) * 0.125f;
  }
  template <class B>
  BCU_FN uint32_t entry(B b, int k) {
    return grid_iq1(b(2 + k) | (word_of_2(b, 34 + 2 * (k >> 2)) >> (3 * (k & 3)) & 7u) << 8);
  }
  template <class B>
  BCU_FN bool less(B b, int k) {
    return b(35 + 2 * (k >> 2)) >> 7 != 0u;
  }
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    int k = 2 * g + (i >> 3);
    return grid_value_1(entry(b, k), i & 7, less(b, k));
  }
};
template <>
struct Blocks<kIQ1_M> {
  BCU_GRID_256(56, 16)
  template <class B>
  BCU_FN float scale(B b, int g) {
    uint32_t bits = b(49) >> 4 | (b(51) & 240u) | (b(53) & 240u) << 4 | (b(55) & 240u) << 8;
    uint32_t three = word_of_2(b, 48 + 2 * (g >> 2)) >> (3 * (g & 3)) & 7u;
    return half_value(bits) * float(2 * int(three) + 1) * 0.125f;
  }
  template <class B>
  BCU_FN uint32_t entry(B b, int k) {
    return grid_iq1(b(k) | (uint32_t(half_byte(b, 32, k)) & 7u) << 8);
  }
  template <class B>
  BCU_FN bool less(B b, int k) {
    return half_byte(b, 32, k) >= 8;
  }
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    int k = 2 * g + (i >> 3);
    return grid_value_1(entry(b, k), i & 7, less(b, k));
  }
};
template <>
struct Blocks<kIQ4_XS> {
  BCU_GRID_256(136, 32)
  template <class B>
  BCU_FN float scale(B b, int g) {
    int k = g >> 1, six = half_byte(b, 4, k) | int(word_of_2(b, 2) >> (2 * k) & 3u) << 4;
    return half_at(b, 0) * float(six - 32);
  }
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    return Blocks<kIQ4_NL>::entry(uint32_t(nibble(b, 8 + 16 * (g >> 1), g & 1, i)));
  }
};

// -1, 0 or 1. A byte of TQ1_0 is a number below 1 in 8 bits, whose digits to the base 3 are those of 5 values.
template <>
struct Blocks<kTQ1_0> {
  BCU_GRID_256(54, 32)
  template <class B>
  BCU_FN float scale(B b, int) {
    return half_at(b, 52);
  }
  BCU_FN int digit(uint32_t byte, int place) {
    uint32_t power = place == 0 ? 1u : place == 1 ? 3u : place == 2 ? 9u : place == 3 ? 27u : 81u;
    return int((byte * power & 255u) * 3u >> 8) - 1;
  }
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    if (g < 10) return digit(b(16 * (g & 1) + i), g >> 1);
    if (g < 15) return digit(b(32 + i), g - 10);
    return digit(b(48 + (i & 3)), i >> 2);
  }
};
template <>
struct Blocks<kTQ2_0> {
  BCU_GRID_256(66, 32)
  template <class B>
  BCU_FN float scale(B b, int) {
    return half_at(b, 64);
  }
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    return two_bits(b, 0, g, i) - 1;
  }
};
#undef BCU_GRID_256

}  // namespace baracuda::quant
