// The values of GGUF's blocks. Value 16 g + i of a block whose byte k is b(k) is scale(b, g) code(b, g, i), of an
// integer of 8 bits, and where the format has minima (kLow) low(b, g) besides; kGroup values after another share both.
// In f32, rounded once at most, for scales times integers fit its significand. Portable.
#pragma once
#include "ops/quant/blocks.h"

namespace baracuda::quant {

template <class B>
BCU_FN float half_at(B b, int at) {
  return half_value(b(at) | b(at + 1) << 8);
}
// 4 bits: bytes hold values i of one group of 16 in their lower halves, of the next group in the upper ones.
template <class B>
BCU_FN int nibble(B b, int at, int g, int i) {
  return int(b(at + i) >> (4 * g) & 15u);
}
// Of a signed byte.
BCU_FN int whole(uint32_t byte) { return int(byte ^ 128u) - 128; }

template <int kFormat>
struct Blocks;

// What formats share, as text: Metal has no derived structs. Blocks of 32 that begin with a scale, and those whose
// minimum follows it; super-blocks of 256, whose groups of 16 or 32 have scales of their own.
#define BCU_FIRST_SCALE          \
  template <class B>             \
  BCU_FN float scale(B b, int) { \
    return half_at(b, 0);        \
  }
#define BCU_NO_LOW           \
  template <class B>         \
  BCU_FN float low(B, int) { \
    return 0.0f;             \
  }
#define BCU_SCALED_32                                 \
  enum : int { kValues = 32, kGroup = 32, kLow = 0 }; \
  BCU_FIRST_SCALE BCU_NO_LOW
#define BCU_ABOVE_32                                  \
  enum : int { kValues = 32, kGroup = 32, kLow = 1 }; \
  BCU_FIRST_SCALE                                     \
  template <class B>                                  \
  BCU_FN float low(B b, int) {                        \
    return half_at(b, 2);                             \
  }
#define BCU_AROUND_256                    \
  enum : int { kValues = 256, kLow = 0 }; \
  BCU_NO_LOW
#define BCU_ABOVE_256                                  \
  enum : int { kValues = 256, kGroup = 32, kLow = 1 }; \
  template <class B>                                   \
  BCU_FN float scale(B b, int g) {                     \
    return half_at(b, 0) * six_bits<0>(b, g >> 1);     \
  }                                                    \
  template <class B>                                   \
  BCU_FN float low(B b, int g) {                       \
    return half_at(b, 2) * -six_bits<4>(b, g >> 1);    \
  }

template <>
struct Blocks<kQ4_0> {
  BCU_SCALED_32
  enum : int { kBytes = 18 };
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    return nibble(b, 2, g, i) - 8;
  }
};
template <>
struct Blocks<kQ4_1> {
  BCU_ABOVE_32
  enum : int { kBytes = 20 };
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    return nibble(b, 4, g, i);
  }
};
// The fifth bits of 32 values follow the scales.
template <class B>
BCU_FN int five_bits(B b, int at, int g, int i) {
  uint32_t upper = (b(at + 2 * g) | b(at + 2 * g + 1) << 8) >> i & 1u;
  return nibble(b, at + 4, g, i) + int(upper << 4);
}
template <>
struct Blocks<kQ5_0> {
  BCU_SCALED_32
  enum : int { kBytes = 22 };
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    return five_bits(b, 2, g, i) - 16;
  }
};
template <>
struct Blocks<kQ5_1> {
  BCU_ABOVE_32
  enum : int { kBytes = 24 };
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    return five_bits(b, 4, g, i);
  }
};
template <>
struct Blocks<kQ8_0> {
  BCU_SCALED_32
  enum : int { kBytes = 34 };
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    return whole(b(2 + 16 * g + i));
  }
};

template <class B>
BCU_FN int two_bits(B b, int at, int g, int i) {
  return int(b(at + 32 * (g >> 3) + 16 * (g & 1) + i) >> (2 * (g >> 1 & 3)) & 3u);
}
template <>
struct Blocks<kQ2_K> {
  enum : int { kBytes = 84, kValues = 256, kGroup = 16, kLow = 1 };
  template <class B>
  BCU_FN float scale(B b, int g) {
    return half_at(b, 80) * float(int(b(g) & 15u));
  }
  template <class B>
  BCU_FN float low(B b, int g) {
    return half_at(b, 82) * -float(int(b(g) >> 4));
  }
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    return two_bits(b, 16, g, i);
  }
};
template <>
struct Blocks<kQ3_K> {
  BCU_AROUND_256
  enum : int { kBytes = 110, kGroup = 16 };
  template <class B>
  BCU_FN float scale(B b, int g) {
    uint32_t lower = b(96 + (g & 7)) >> (4 * (g >> 3)) & 15u, upper = b(104 + (g & 3)) >> (2 * (g >> 2)) & 3u;
    return half_at(b, 108) * float(int(lower | upper << 4) - 32);
  }
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    return two_bits(b, 32, g, i) + 4 * int(b(16 * (g & 1) + i) >> (g >> 1) & 1u) - 4;
  }
};
// The scale (kMin = 0) or the minimum (4) of 6 bits that group j of 8 has.
template <int kMin, class B>
BCU_FN float six_bits(B b, int j) {
  uint32_t near = b(4 + kMin + (j & 3)), far = b(12 + (j & 3)) >> kMin & 15u;
  return float(int(j < 4 ? near & 63u : (far | near >> 6 << 4)));
}
// 4 bits of super-blocks: lower halves of 32 bytes, then the upper ones.
template <class B>
BCU_FN int nibble_of_64(B b, int at, int g, int i) {
  return nibble(b, at + 32 * (g >> 2) + 16 * (g & 1), g >> 1 & 1, i);
}
template <>
struct Blocks<kQ4_K> {
  BCU_ABOVE_256
  enum : int { kBytes = 144 };
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    return nibble_of_64(b, 16, g, i);
  }
};
template <>
struct Blocks<kQ5_K> {
  BCU_ABOVE_256
  enum : int { kBytes = 176 };
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    return nibble_of_64(b, 48, g, i) + 16 * int(b(16 + 16 * (g & 1) + i) >> (g >> 1) & 1u);
  }
};
template <>
struct Blocks<kQ6_K> {
  BCU_AROUND_256
  enum : int { kBytes = 210, kGroup = 16 };
  template <class B>
  BCU_FN float scale(B b, int g) {
    return half_at(b, 208) * float(whole(b(192 + g)));
  }
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    return nibble(b, 64 * (g >> 3) + 16 * (g & 3), g >> 2 & 1, i) + 16 * two_bits(b, 128, g, i) - 32;
  }
};
template <>
struct Blocks<kQ8_K> {
  BCU_AROUND_256
  enum : int { kBytes = 292, kGroup = 32 };
  template <class B>
  BCU_FN float scale(B b, int) {
    return math::bit_cast<float>(b(0) | b(1) << 8 | b(2) << 16 | b(3) << 24);
  }
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    return whole(b(4 + 16 * g + i));
  }
};

// Tables of 16 values.
template <>
struct Blocks<kIQ4_NL> {
  BCU_SCALED_32
  enum : int { kBytes = 18 };
  // -127 -104 -83 -65 -49 -35 -22 -10 1 13 25 38 53 69 89 113, and 128 more
  BCU_FN int entry(uint32_t code) {
    uint32_t low = (code & 4u) != 0u ? 0x766a5d4fu : 0x3f2d1801u, high = (code & 4u) != 0u ? 0xf1d9c5b5u : 0xa6998d81u;
    return int(((code & 8u) != 0u ? high : low) >> (8u * (code & 3u)) & 255u) - 128;
  }
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    return entry(uint32_t(nibble(b, 2, g, i)));
  }
};
template <>
struct Blocks<kMXFP4> {
  BCU_NO_LOW
  enum : int { kBytes = 17, kValues = 32, kGroup = 32, kLow = 0 };
  // 0 1 2 3 4 6 8 12, twice what the 4-bit floats are
  BCU_FN int entry(uint32_t code) {
    int size = int(((code & 4u) != 0u ? 0x0c080604u : 0x03020100u) >> (8u * (code & 3u)) & 255u);
    return (code & 8u) != 0u ? -size : size;
  }
  // 2^(e - 128)
  BCU_FN float power(uint32_t e) { return math::bit_cast<float>(e < 2u ? 0x200000u << e : (e - 1u) << 23); }
  template <class B>
  BCU_FN float scale(B b, int) {
    return power(b(0));
  }
  template <class B>
  BCU_FN int code(B b, int g, int i) {
    return entry(uint32_t(nibble(b, 1, g, i)));
  }
};

#undef BCU_FIRST_SCALE
#undef BCU_NO_LOW
#undef BCU_SCALED_32
#undef BCU_ABOVE_32
#undef BCU_AROUND_256
#undef BCU_ABOVE_256

template <int kFormat, class B>
BCU_FN float value_of(B b, int g, int i) {
  using F = Blocks<kFormat>;
  float v = F::scale(b, g) * float(F::code(b, g, i));
  return F::kLow != 0 ? v + F::low(b, g) : v;
}

}  // namespace baracuda::quant
