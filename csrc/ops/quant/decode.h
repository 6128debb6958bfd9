// The values of GGUF's blocks. F::value(b, g, i) is value 16 g + i of a block whose byte k is b(k): in f32, rounded
// once at most, for scales times integers fit its significand. Portable.
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

template <>
struct Blocks<kQ4_0> {
  enum : int { kBytes = 18, kValues = 32 };
  template <class B>
  BCU_FN float value(B b, int g, int i) {
    return half_at(b, 0) * float(nibble(b, 2, g, i) - 8);
  }
};
template <>
struct Blocks<kQ4_1> {
  enum : int { kBytes = 20, kValues = 32 };
  template <class B>
  BCU_FN float value(B b, int g, int i) {
    return half_at(b, 0) * float(nibble(b, 4, g, i)) + half_at(b, 2);
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
  enum : int { kBytes = 22, kValues = 32 };
  template <class B>
  BCU_FN float value(B b, int g, int i) {
    return half_at(b, 0) * float(five_bits(b, 2, g, i) - 16);
  }
};
template <>
struct Blocks<kQ5_1> {
  enum : int { kBytes = 24, kValues = 32 };
  template <class B>
  BCU_FN float value(B b, int g, int i) {
    return half_at(b, 0) * float(five_bits(b, 4, g, i)) + half_at(b, 2);
  }
};
template <>
struct Blocks<kQ8_0> {
  enum : int { kBytes = 34, kValues = 32 };
  template <class B>
  BCU_FN float value(B b, int g, int i) {
    return half_at(b, 0) * float(whole(b(2 + 16 * g + i)));
  }
};

// Super-blocks of 256: groups of 16 or 32 have scales of their own.
template <class B>
BCU_FN int two_bits(B b, int at, int g, int i) {
  return int(b(at + 32 * (g >> 3) + 16 * (g & 1) + i) >> (2 * (g >> 1 & 3)) & 3u);
}
template <>
struct Blocks<kQ2_K> {
  enum : int { kBytes = 84, kValues = 256 };
  template <class B>
  BCU_FN float value(B b, int g, int i) {
    float d = half_at(b, 80) * float(int(b(g) & 15u)), low = half_at(b, 82) * float(int(b(g) >> 4));
    return d * float(two_bits(b, 16, g, i)) - low;
  }
};
template <>
struct Blocks<kQ3_K> {
  enum : int { kBytes = 110, kValues = 256 };
  template <class B>
  BCU_FN float value(B b, int g, int i) {
    uint32_t lower = b(96 + (g & 7)) >> (4 * (g >> 3)) & 15u, upper = b(104 + (g & 3)) >> (2 * (g >> 2)) & 3u;
    float d = half_at(b, 108) * float(int(lower | upper << 4) - 32);
    int third = int(b(16 * (g & 1) + i) >> (g >> 1) & 1u);
    return d * float(two_bits(b, 32, g, i) + 4 * third - 4);
  }
};
// The scale (kMin = 0) or the minimum (4) of 6 bits that group j of 8 has.
template <int kMin, class B>
BCU_FN float six_bits(B b, int j) {
  uint32_t near = b(4 + kMin + (j & 3)), far = b(12 + (j & 3)) >> kMin & 15u;
  return float(int(j < 4 ? near & 63u : (far | near >> 6 << 4)));
}
template <class B>
BCU_FN float between(B b, int g, int q) {
  float d = half_at(b, 0) * six_bits<0>(b, g >> 1), low = half_at(b, 2) * six_bits<4>(b, g >> 1);
  return d * float(q) - low;
}
// 4 bits of super-blocks: lower halves of 32 bytes, then the upper ones.
template <class B>
BCU_FN int nibble_of_64(B b, int at, int g, int i) {
  return nibble(b, at + 32 * (g >> 2) + 16 * (g & 1), g >> 1 & 1, i);
}
template <>
struct Blocks<kQ4_K> {
  enum : int { kBytes = 144, kValues = 256 };
  template <class B>
  BCU_FN float value(B b, int g, int i) {
    return between(b, g, nibble_of_64(b, 16, g, i));
  }
};
template <>
struct Blocks<kQ5_K> {
  enum : int { kBytes = 176, kValues = 256 };
  template <class B>
  BCU_FN float value(B b, int g, int i) {
    int upper = int(b(16 + 16 * (g & 1) + i) >> (g >> 1) & 1u);
    return between(b, g, nibble_of_64(b, 48, g, i) + 16 * upper);
  }
};
template <>
struct Blocks<kQ6_K> {
  enum : int { kBytes = 210, kValues = 256 };
  template <class B>
  BCU_FN float value(B b, int g, int i) {
    int lower = nibble(b, 64 * (g >> 3) + 16 * (g & 3), g >> 2 & 1, i);
    return half_at(b, 208) * float(whole(b(192 + g))) * float(lower + 16 * two_bits(b, 128, g, i) - 32);
  }
};
template <>
struct Blocks<kQ8_K> {
  enum : int { kBytes = 292, kValues = 256 };
  template <class B>
  BCU_FN float value(B b, int g, int i) {
    float d = math::bit_cast<float>(b(0) | b(1) << 8 | b(2) << 16 | b(3) << 24);
    return d * float(whole(b(4 + 16 * g + i)));
  }
};

// Tables of 16 values.
template <>
struct Blocks<kIQ4_NL> {
  enum : int { kBytes = 18, kValues = 32 };
  // -127 -104 -83 -65 -49 -35 -22 -10 1 13 25 38 53 69 89 113, and 128 more
  BCU_FN int entry(uint32_t code) {
    uint32_t low = (code & 4u) != 0u ? 0x766a5d4fu : 0x3f2d1801u, high = (code & 4u) != 0u ? 0xf1d9c5b5u : 0xa6998d81u;
    return int(((code & 8u) != 0u ? high : low) >> (8u * (code & 3u)) & 255u) - 128;
  }
  template <class B>
  BCU_FN float value(B b, int g, int i) {
    return half_at(b, 0) * float(entry(uint32_t(nibble(b, 2, g, i))));
  }
};
template <>
struct Blocks<kMXFP4> {
  enum : int { kBytes = 17, kValues = 32 };
  // 0 1 2 3 4 6 8 12, twice what the 4-bit floats are
  BCU_FN int entry(uint32_t code) {
    int size = int(((code & 4u) != 0u ? 0x0c080604u : 0x03020100u) >> (8u * (code & 3u)) & 255u);
    return (code & 8u) != 0u ? -size : size;
  }
  // 2^(e - 128)
  BCU_FN float scale(uint32_t e) { return math::bit_cast<float>(e < 2u ? 0x200000u << e : (e - 1u) << 23); }
  template <class B>
  BCU_FN float value(B b, int g, int i) {
    return scale(b(0)) * float(entry(uint32_t(nibble(b, 1, g, i))));
  }
};

}  // namespace baracuda::quant
