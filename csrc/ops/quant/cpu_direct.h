// A chunk of weights times 8-bit activations without unpacking the weights first, for formats whose bytes are nearly
// as the dot product takes them, on levels that multiply 64 bytes at once: no weight is shuffled, activations are.
#pragma once
#include "host/level_bytes.h"
#include "ops/quant/cpu.h"

namespace baracuda::quant {

// How much higher codes are stored where bytes of weights are multiplied as unsigned ones.
template <int kFormat>
inline constexpr int kBytesBias = level::kBytesBias;
#if BCU_LEVEL_QUADS && !defined(__aarch64__)
template <>
inline constexpr int kBytesBias<kQ4_0> = 8;
#define BCU_NIBBLES 1
#else
#define BCU_NIBBLES 0
#endif

// kThere: dot() exists, which wants codes of the activations in the order of arrange(), and adds minima to `lows`.
template <int kFormat>
struct Direct {
  static constexpr bool kThere = false;
};

// A chunk of activations: codes, what sums of 4 of them start with, scales of 32, scale times sum of each group.
struct Activations {
  const int8_t* codes;
  const int32_t* starts;
  const float *scales, *sums;
};

template <class T>
[[gnu::always_inline]] inline T load_as(const void* from) {
  T v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

inline Floats as_floats(Words sums) {
  typedef int32_t Signed __attribute__((vector_size(kVectorBytes)));
  return __builtin_convertvector((Signed)sums, Floats);
}

#if BCU_NIBBLES

typedef uint8_t Bytes16 __attribute__((vector_size(16)));
typedef uint8_t Bytes32 __attribute__((vector_size(32)));
typedef uint8_t Bytes64 __attribute__((vector_size(64)));
typedef uint16_t Halves16 __attribute__((vector_size(32)));
typedef float Floats8 __attribute__((vector_size(32)));
typedef int32_t Lanes16 __attribute__((vector_size(64)));

[[gnu::always_inline]] inline Bytes32 join(Bytes16 a, Bytes16 b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,
                                 23, 24, 25, 26, 27, 28, 29, 30, 31);
}
[[gnu::always_inline]] inline Bytes64 join(Bytes32 a, Bytes32 b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,
                                 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44,
                                 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63);
}
// The scales of 8 blocks, kBytes apart.
template <int kBytes>
[[gnu::always_inline]] inline Floats eight_scales(const uint8_t* p) {
  const auto at = [p](int i) { return load_as<uint16_t>(p + i * kBytes); };
  const Halves16 h = {at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)};
  uint16_t bits[16];
  std::memcpy(bits, &h, sizeof bits);
  const Floats s = level::load_halves(bits);
  return s + (s - s);
}
// Lane i has scale `first` + i / each.
template <int kEach>
[[gnu::always_inline]] inline Floats pick(Floats scales, int first) {
  Lanes16 lanes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return __builtin_shuffle(scales, lanes / kEach + first);
}
// Codes of Q4_0 in their order, 8 more than they are, in pieces of 16 bytes.
inline void unpack_nibbles(const uint8_t* block, uint8_t* codes) {
  const Bytes16 v = load_as<Bytes16>(block), low = v & 15, high = v >> 4;
  std::memcpy(codes, &low, 16), std::memcpy(codes + 16, &high, 16);
}

template <>
struct Direct<kQ4_0> {
  static constexpr bool kThere = true;
  // Of 4 blocks the lower halves, then the upper ones.
  static void arrange(int8_t* codes, int32_t* starts) {
    int8_t plain[kChunk];
    std::memcpy(plain, codes, kChunk);
    for (int i = 0; i < kChunk; i += 16)
      std::memcpy(codes + i / 128 * 128 + i % 32 / 16 * 64 + i % 128 / 32 * 16, plain + i, 16);
    for (int i = 0; i < kChunk / 8; ++i) {
      int sum = 0;
      for (int k = 0; k < 4; ++k)
        sum += codes[i / 16 * 128 + i % 16 * 4 + k] + codes[i / 16 * 128 + 64 + i % 16 * 4 + k];
      starts[i] = -8 * sum;
    }
  }
  static Floats dot(const uint8_t* bytes, const Activations& x, Floats8&) {
    const Floats scales = eight_scales<18>(bytes) * load_floats(x.scales);
    Floats sum = {};
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const uint8_t* p = bytes + 72 * i + 2;
      const Bytes64 v = join(join(load_as<Bytes16>(p), load_as<Bytes16>(p + 18)),
                             join(load_as<Bytes16>(p + 36), load_as<Bytes16>(p + 54)));
      Words whole = load_as<Words>(x.starts + 16 * i);
      whole = level::dot_bytes(whole, (Words)(v & 15), load_as<Words>(x.codes + 128 * i));
      whole = level::dot_bytes(whole, (Words)(v >> 4), load_as<Words>(x.codes + 128 * i + 64));
      sum += as_floats(whole) * pick<4>(scales, 4 * i);
    }
    return sum;
  }
};

template <>
struct Direct<kQ8_0> {
  static constexpr bool kThere = true;
  static void arrange(int8_t*, int32_t*) {}
  static Floats dot(const uint8_t* bytes, const Activations& x, Floats8&) {
    const Floats scales = eight_scales<34>(bytes) * load_floats(x.scales);
    Floats sum = {};
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const uint8_t* p = bytes + 68 * i + 2;
      const Bytes64 v = join(load_as<Bytes32>(p), load_as<Bytes32>(p + 34)) ^ 128;
      const Words whole =
          level::dot_bytes(load_as<Words>(x.starts + 16 * i), (Words)v, load_as<Words>(x.codes + 64 * i));
      sum += as_floats(whole) * pick<8>(scales, 2 * i);
    }
    return sum;
  }
};

template <>
struct Direct<kQ4_K> {
  static constexpr bool kThere = true;
  static void arrange(int8_t*, int32_t*) {}
  static Floats8 eight(uint64_t bytes) {
    typedef uint8_t Eight __attribute__((vector_size(8)));
    return __builtin_convertvector(load_as<Eight>(&bytes), Floats8);
  }
  static Floats dot(const uint8_t* bytes, const Activations& x, Floats8& lows) {
    const Halves16 h = {load_as<uint16_t>(bytes), load_as<uint16_t>(bytes + 2)};
    uint16_t bits[16];
    std::memcpy(bits, &h, sizeof bits);
    Floats both = level::load_halves(bits);
    both += both - both;
    const uint32_t a = load_as<uint32_t>(bytes + 4), b = load_as<uint32_t>(bytes + 8),
                   c = load_as<uint32_t>(bytes + 12);
    const uint32_t far_scales = (c & 0x0f0f0f0fu) | (a >> 6 & 0x03030303u) << 4;
    const uint32_t far_lows = (c >> 4 & 0x0f0f0f0fu) | (b >> 6 & 0x03030303u) << 4;
    const Floats8 own = eight((a & 0x3f3f3f3fu) | uint64_t{far_scales} << 32) * both[0];
    const Floats scales = __builtin_shufflevector(own, own, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    lows -= eight((b & 0x3f3f3f3fu) | uint64_t{far_lows} << 32) * both[1] * load_as<Floats8>(x.sums);
    Floats sum = {};
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const Bytes32 v = load_as<Bytes32>(bytes + 16 + 32 * i);
      const Bytes64 q = join(v & 15, v >> 4);
      const Words whole = level::dot_bytes(Words{}, (Words)q, load_as<Words>(x.codes + 64 * i));
      sum += as_floats(whole) * pick<8>(scales, 2 * i);
    }
    return sum * x.scales[0];
  }
};

#endif

}  // namespace baracuda::quant
