// A chunk of weights in blocks as small integers in their order, with the scale of each group, and its minimum where
// there is one: loops over bytes, of which compilers make vectors at every level. Values are those of decode.h.
#pragma once
#include "host/halves.h"
#include "host/level_bytes.h"
#include "ops/quant/cpu.h"

namespace baracuda::quant {

template <class T>
[[gnu::always_inline]] inline T load_as(const void* from) {
  T v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

// What a format's bits are: codes<kAbove>(block, to) writes them in order, each kAbove higher; its codes are kOffset
// lower. groups(bytes, scales, lows) is of a chunk.
template <int kFormat>
struct Bits;

inline constexpr int kBlocks32 = kChunk / 32;

// Halves of kBlocks32 blocks, `at` bytes behind their beginnings. They are put together in a register: what was stored
// in parts is slow to load as a whole.
template <int kBytes>
[[gnu::always_inline]] inline void block_halves(const uint8_t* bytes, int at, float* to) {
  static_assert(kBlocks32 == 8);
  const auto half = [=](int b) { return load_as<uint16_t>(bytes + kBytes * b + at); };
  typedef uint16_t Halves __attribute__((vector_size(32)));
  const Halves halves = {half(0), half(1), half(2), half(3), half(4), half(5), half(6), half(7)};
  uint16_t each[16];
  std::memcpy(each, &halves, sizeof each);
  f16_to_float(each, to, std::max(kBlocks32, kWide));  // whole vectors
}
inline float one_half(const uint8_t* p) { return f16_to_float(load_as<uint16_t>(p)); }

// Blocks of 32 that begin with a scale, and where they have one the minimum.
template <int kFormat>
struct Scaled32 {
  static void groups(const uint8_t* bytes, float* scales, float* lows) {
    block_halves<Blocks<kFormat>::kBytes>(bytes, 0, scales);
    if constexpr (Blocks<kFormat>::kLow != 0) block_halves<Blocks<kFormat>::kBytes>(bytes, 2, lows);
  }
};

typedef uint8_t Bytes16 __attribute__((vector_size(16)));
typedef uint32_t Words4 __attribute__((vector_size(16)));

// 16 bytes that hold values in their lower and others in their upper halves.
template <int kAbove>
[[gnu::always_inline]] inline void nibbles(const uint8_t* from, uint8_t* to) {
  const Bytes16 v = load_as<Bytes16>(from);
  const Bytes16 low = (v & 15) + static_cast<uint8_t>(kAbove), high = (v >> 4) + static_cast<uint8_t>(kAbove);
  std::memcpy(to, &low, 16), std::memcpy(to + 16, &high, 16);
}
template <>
struct Bits<kQ4_0> : Scaled32<kQ4_0> {
  static constexpr int kOffset = 8;
  template <int kAbove>
  static void codes(const uint8_t* block, uint8_t* to) {
    nibbles<kAbove>(block + 2, to);
  }
};
template <>
struct Bits<kQ4_1> : Scaled32<kQ4_1> {
  static constexpr int kOffset = 0;
  template <int kAbove>
  static void codes(const uint8_t* block, uint8_t* to) {
    nibbles<kAbove>(block + 4, to);
  }
};

// 16 where one of 16 bits is set.
[[gnu::always_inline]] inline Bytes16 fifth_bits(const uint8_t* two) {
  const Bytes16 both = {two[0], two[1]};
  const Bytes16 each = __builtin_shufflevector(both, both, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
  const Bytes16 bits = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  return (Bytes16)((each & bits) == bits) & 16;
}
template <int kAbove>
void five_bits(const uint8_t* from, uint8_t* to) {
  const Bytes16 v = load_as<Bytes16>(from + 4);
  const Bytes16 low = ((v & 15) | fifth_bits(from)) + static_cast<uint8_t>(kAbove);
  const Bytes16 high = ((v >> 4) | fifth_bits(from + 2)) + static_cast<uint8_t>(kAbove);
  std::memcpy(to, &low, 16), std::memcpy(to + 16, &high, 16);
}
template <>
struct Bits<kQ5_0> : Scaled32<kQ5_0> {
  static constexpr int kOffset = 16;
  template <int kAbove>
  static void codes(const uint8_t* block, uint8_t* to) {
    five_bits<kAbove>(block + 2, to);
  }
};
template <>
struct Bits<kQ5_1> : Scaled32<kQ5_1> {
  static constexpr int kOffset = 0;
  template <int kAbove>
  static void codes(const uint8_t* block, uint8_t* to) {
    five_bits<kAbove>(block + 4, to);
  }
};

// Signed bytes.
template <int kAbove, int kCount>
void whole_bytes(const uint8_t* __restrict__ from, uint8_t* __restrict__ to) {
  for (int i = 0; i < kCount; ++i) to[i] = static_cast<uint8_t>(from[i] + 128 + kAbove);
}
template <>
struct Bits<kQ8_0> : Scaled32<kQ8_0> {
  static constexpr int kOffset = 128;
  template <int kAbove>
  static void codes(const uint8_t* block, uint8_t* to) {
    whole_bytes<kAbove, 32>(block + 2, to);
  }
};
template <>
struct Bits<kQ8_K> {
  static constexpr int kOffset = 128;
  template <int kAbove>
  static void codes(const uint8_t* block, uint8_t* to) {
    whole_bytes<kAbove, 256>(block + 4, to);
  }
  static void groups(const uint8_t* block, float* scales, float*) {
    for (int g = 0; g < 8; ++g) scales[g] = load_as<float>(block);
  }
};

// Tables of 16 values.
template <int kFormat, int kAbove>
struct TableOfBits {
  alignas(16) uint8_t bytes[16];
  TableOfBits() {
    for (uint32_t q = 0; q < 16; ++q) bytes[q] = static_cast<uint8_t>(Blocks<kFormat>::entry(q) + 128 + kAbove);
  }
};
template <int kFormat, int kAbove>
inline const TableOfBits<kFormat, kAbove> kTableOfBits;
template <int kFormat, int kAbove>
void picked(const uint8_t* from, uint8_t* to) {
  uint8_t each[32];
  nibbles<0>(from, each);
  for (int i = 0; i < 32; i += 16) level::pick_bytes(kTableOfBits<kFormat, kAbove>.bytes, each + i, to + i);
}
template <>
struct Bits<kIQ4_NL> : Scaled32<kIQ4_NL> {
  static constexpr int kOffset = 128;
  template <int kAbove>
  static void codes(const uint8_t* block, uint8_t* to) {
    picked<kIQ4_NL, kAbove>(block + 2, to);
  }
};
template <>
struct Bits<kMXFP4> {
  static constexpr int kOffset = 128;
  template <int kAbove>
  static void codes(const uint8_t* block, uint8_t* to) {
    picked<kMXFP4, kAbove>(block + 1, to);
  }
  static void groups(const uint8_t* bytes, float* scales, float*) {
    for (int b = 0; b < kBlocks32; ++b) scales[b] = Blocks<kMXFP4>::power(bytes[Blocks<kMXFP4>::kBytes * b]);
  }
};

// Small integers times the scale of their block.
template <int kCount, class T>
void times(const T* __restrict__ small, float scale, float* __restrict__ to) {
  for (int g = 0; g < kCount; ++g) to[g] = scale * static_cast<float>(small[g]);
}
template <>
struct Bits<kQ2_K> {
  static constexpr int kOffset = 0;
  template <int kAbove>
  static void codes(const uint8_t* __restrict__ block, uint8_t* __restrict__ to) {
#pragma GCC unroll 8
    for (int at = 0; at < 256; at += 128) {
      const uint8_t* two = block + 16 + at / 4;
#pragma GCC unroll 4
      for (int s = 0; s < 4; ++s)
        for (int i = 0; i < 32; ++i) to[at + 32 * s + i] = static_cast<uint8_t>((two[i] >> 2 * s & 3) + kAbove);
    }
  }
  static void groups(const uint8_t* block, float* scales, float* lows) {
    uint8_t small[32];
    nibbles<0>(block, small);
    times<16>(small, one_half(block + 80), scales), times<16>(small + 16, -one_half(block + 82), lows);
  }
};
template <>
struct Bits<kQ3_K> {
  static constexpr int kOffset = 4;
  template <int kAbove>
  static void codes(const uint8_t* __restrict__ block, uint8_t* __restrict__ to) {
#pragma GCC unroll 8
    for (int at = 0; at < 256; at += 128) {
      const uint8_t* two = block + 32 + at / 4;
#pragma GCC unroll 4
      for (int s = 0; s < 4; ++s) {
        const int bit = at / 32 + s;
        for (int i = 0; i < 32; ++i)
          to[at + 32 * s + i] = static_cast<uint8_t>((two[i] >> 2 * s & 3) + (block[i] >> bit & 1) * 4 + kAbove);
      }
    }
  }
  static void groups(const uint8_t* block, float* scales, float*) {
    const uint32_t low[] = {load_as<uint32_t>(block + 96), load_as<uint32_t>(block + 100)};
    const uint32_t high = load_as<uint32_t>(block + 104);
    const auto four = [=](int i) {
      return (low[i & 1] >> 4 * (i >> 1) & 0x0f0f0f0fu) | (high >> 2 * i & 0x03030303u) << 4;
    };
    const Bytes16 six = (Bytes16)Words4{four(0), four(1), four(2), four(3)} - 32;
    int8_t small[16];
    std::memcpy(small, &six, sizeof small);
    times<16>(small, one_half(block + 108), scales);
  }
};

// Super-blocks with 8 scales and minima of 6 bits.
template <int kFormat>
struct Scaled256 {
  static constexpr int kOffset = 0;
  // The scales, then the minima, as bytes.
  [[gnu::always_inline]] static Words4 small(const uint8_t* block) {
    const uint32_t a = load_as<uint32_t>(block + 4), b = load_as<uint32_t>(block + 8),
                   c = load_as<uint32_t>(block + 12);
    return Words4{a & 0x3f3f3f3fu, (c & 0x0f0f0f0fu) | (a >> 2 & 0x30303030u), b & 0x3f3f3f3fu,
                  (c >> 4 & 0x0f0f0f0fu) | (b >> 2 & 0x30303030u)};
  }
  static void groups(const uint8_t* block, float* scales, float* lows) {
    const Words4 six = small(block);
    uint8_t each[16];
    std::memcpy(each, &six, sizeof each);
    times<8>(each, one_half(block), scales), times<8>(each + 8, -one_half(block + 2), lows);
  }
#if BCU_LEVEL_EIGHTS
  // In registers; `lows` are taken off the values.
  [[gnu::always_inline]] static void groups(const uint8_t* block, level::Floats8& scales, level::Floats8& lows) {
    const Words4 six = small(block);
    level::two_halves(block, scales, lows);
    scales *= level::floats_of_bytes(six[0] | uint64_t{six[1]} << 32);
    lows *= level::floats_of_bytes(six[2] | uint64_t{six[3]} << 32);
  }
#endif
};
template <>
struct Bits<kQ4_K> : Scaled256<kQ4_K> {
  template <int kAbove>
  static void codes(const uint8_t* __restrict__ block, uint8_t* __restrict__ to) {
#pragma GCC unroll 8
    for (int at = 0; at < 256; at += 64) {
      const uint8_t* four = block + 16 + at / 2;
      for (int i = 0; i < 32; ++i) to[at + i] = static_cast<uint8_t>((four[i] & 15) + kAbove);
      for (int i = 0; i < 32; ++i) to[at + 32 + i] = static_cast<uint8_t>((four[i] >> 4) + kAbove);
    }
  }
};
template <>
struct Bits<kQ5_K> : Scaled256<kQ5_K> {
  template <int kAbove>
  static void codes(const uint8_t* __restrict__ block, uint8_t* __restrict__ to) {
#pragma GCC unroll 8
    for (int at = 0; at < 256; at += 64) {
      const uint8_t *four = block + 48 + at / 2, *one = block + 16;
      const int bit = at / 32;
      for (int i = 0; i < 32; ++i)
        to[at + i] = static_cast<uint8_t>((four[i] & 15) + (one[i] >> bit & 1) * 16 + kAbove);
      for (int i = 0; i < 32; ++i)
        to[at + 32 + i] = static_cast<uint8_t>((four[i] >> 4) + (one[i] >> (bit + 1) & 1) * 16 + kAbove);
    }
  }
};
template <>
struct Bits<kQ6_K> {
  static constexpr int kOffset = 32;
  template <int kAbove>
  static void codes(const uint8_t* __restrict__ block, uint8_t* __restrict__ to) {
#pragma GCC unroll 8
    for (int at = 0; at < 256; at += 32) {
      const uint8_t *four = block + at / 128 * 64 + at / 32 % 2 * 32, *two = block + 128 + at / 128 * 32;
      const int half = at / 64 % 2 * 4, pair = at / 32 % 4 * 2;
      for (int i = 0; i < 32; ++i)
        to[at + i] = static_cast<uint8_t>((four[i] >> half & 15) + (two[i] >> pair & 3) * 16 + kAbove);
    }
  }
  static void groups(const uint8_t* block, float* scales, float*) {
    times<16>(reinterpret_cast<const int8_t*>(block + 192), one_half(block + 208), scales);
  }
};

// How much higher codes are stored where bytes of weights are multiplied as unsigned ones.
template <int kFormat>
inline constexpr int kBytesBias = level::kBytesBias == 0 ? 0 : Bits<kFormat>::kOffset;

// A chunk, each code kBias higher than it is.
template <class Format, int kBias>
struct Codes {
  using F = Blocks<Format::kNumber>;
  using B = Bits<Format::kNumber>;
  static constexpr int kGroups = kChunk / F::kGroup;
  alignas(64) uint8_t codes[kChunk];
  alignas(64) float scales[kGroups + kWide], lows[F::kLow ? kGroups + kWide : 1];

  [[gnu::always_inline]] void read(const uint8_t* bytes) {
#pragma GCC unroll 8
    for (int b = 0; b < kChunk / F::kValues; ++b)
      B::template codes<kBias - B::kOffset>(bytes + b * Format::kBytes, codes + b * F::kValues);
    B::groups(bytes, scales, lows);
  }
};

}  // namespace baracuda::quant
