// A chunk of weights times 8-bit activations without unpacking the weights first, for formats whose bytes are nearly
// as the dot product takes them, on levels that multiply 64 bytes at once: no weight is shuffled, activations are.
#pragma once
#include "ops/quant/cpu_grids.h"

namespace baracuda::quant {

#if BCU_LEVEL_QUADS && !defined(__aarch64__)
#define BCU_NIBBLES 1
#else
#define BCU_NIBBLES 0
#endif

// kThere: dot() exists, which wants codes of the activations in the order of arrange(), and adds to `sum` and, minima,
// to `lows`.
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

// Each lane's four codes added to it.
inline Words sums_of_4(Words to, const int8_t* codes) {
  return level::dot_bytes(to, Words{} + 0x01010101u, load_as<Words>(codes));
}

inline Floats as_floats(Words sums) {
  typedef int32_t Signed __attribute__((vector_size(kVectorBytes)));
  return __builtin_convertvector((Signed)sums, Floats);
}

#if BCU_NIBBLES

using level::Floats8;
typedef int32_t Lanes16 __attribute__((vector_size(64)));
typedef uint8_t Bytes32 __attribute__((vector_size(32)));
typedef uint8_t Bytes64 __attribute__((vector_size(64)));
typedef uint16_t Pairs16 __attribute__((vector_size(32)));
typedef uint16_t Pairs32 __attribute__((vector_size(64)));  // of bytes

// Halves, one after another from the first, as scales of which none is infinite.
[[gnu::always_inline]] inline Floats scales_of(Pairs16 halves) {
  const Floats s = level::load_halves(reinterpret_cast<const uint16_t*>(&halves));
  return s * 0.0f + s;
}
// Lane i has scale first + i / each.
template <int kEach>
[[gnu::always_inline]] inline Floats pick(Floats scales, int first) {
  Lanes16 lanes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return __builtin_shuffle(scales, lanes / kEach + first);
}
// 4 blocks of Q4_0, as two vectors that overlap: each block is a pair of bytes, its scale, and 8 pairs of codes.
struct FourNibbles {
  Pairs32 first, second;
  [[gnu::always_inline]] explicit FourNibbles(const uint8_t* p)
      : first(load_as<Pairs32>(p)), second(load_as<Pairs32>(p + 8)) {}
  [[gnu::always_inline]] Bytes64 codes() const {
    return (Bytes64)__builtin_shufflevector(first, second, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 19,
                                            20, 21, 22, 23, 24, 25, 26, 28, 29, 30, 31, 60, 61, 62, 63);
  }
};
[[gnu::always_inline]] inline Floats scales_of(const FourNibbles& a, const FourNibbles& b) {
  const Pairs32 s = __builtin_shufflevector(a.first, b.first, 0, 9, 18, 27, 32, 41, 50, 59, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  return scales_of(__builtin_shufflevector(s, s, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}
// 2 blocks of Q8_0: loads of 32 bytes, of which fewer cross a line of the caches than of 64.
[[gnu::always_inline]] inline Bytes64 two_eights(const uint8_t* p) {
  const Bytes32 a = load_as<Bytes32>(p + 2), b = load_as<Bytes32>(p + 36);
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,
                                 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44,
                                 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63);
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
    for (int i = 0; i < 2; ++i) {
      const Words sums = sums_of_4(sums_of_4(Words{}, codes + 128 * i), codes + 128 * i + 64) * -8u;
      std::memcpy(starts + 16 * i, &sums, sizeof sums);
    }
  }
  struct Weights {
    Bytes64 codes[2];
    Floats scales;
  };
  static Weights read(const uint8_t* bytes) {
    const FourNibbles a(bytes), b(bytes + 72);
    return {{a.codes(), b.codes()}, scales_of(a, b)};
  }
  static Floats dot(const Weights& w, const Activations& x, Floats sum, Floats8&) {
    const Floats scales = w.scales * load_as<Floats>(x.scales);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      Words whole = load_as<Words>(x.starts + 16 * i);
      whole = level::dot_bytes(whole, (Words)(w.codes[i] & 15), load_as<Words>(x.codes + 128 * i));
      whole = level::dot_bytes(whole, (Words)(w.codes[i] >> 4), load_as<Words>(x.codes + 128 * i + 64));
      sum += as_floats(whole) * pick<4>(scales, 4 * i);
    }
    return sum;
  }
};

template <>
struct Direct<kQ8_0> {
  static constexpr bool kThere = true;
  static void arrange(int8_t*, int32_t*) {}
  struct Weights {
    Bytes64 codes[4];
    Floats scales;
  };
  static Weights read(const uint8_t* bytes) {
    const auto at = [bytes](int i) { return load_as<uint16_t>(bytes + 34 * i); };
    const Pairs16 halves = {at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)};
    return {{two_eights(bytes) ^ 128, two_eights(bytes + 68) ^ 128, two_eights(bytes + 136) ^ 128,
             two_eights(bytes + 204) ^ 128},
            scales_of(halves)};
  }
  static Floats dot(const Weights& w, const Activations& x, Floats sum, Floats8&) {
    const Floats scales = w.scales * load_as<Floats>(x.scales);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const Words whole =
          level::dot_bytes(load_as<Words>(x.starts + 16 * i), (Words)w.codes[i], load_as<Words>(x.codes + 64 * i));
      sum += as_floats(whole) * pick<8>(scales, 2 * i);
    }
    return sum;
  }
};

template <>
struct Direct<kQ4_K> {
  static constexpr bool kThere = true;
  // Of each 128 values the first and the third 32, then the others: what low and high halves of 64 bytes are.
  static void arrange(int8_t* codes, int32_t*) {
    for (int i = 32; i < kChunk; i += 128) std::swap_ranges(codes + i, codes + i + 32, codes + i + 32);
  }
  struct Weights {
    Bytes64 codes[2];
    Floats8 scales, lows;
  };
  static Weights read(const uint8_t* bytes) {
    Floats8 scales, lows;
    Bits<kQ4_K>::groups(bytes, scales, lows);
    return {{load_as<Bytes64>(bytes + 16), load_as<Bytes64>(bytes + 80)}, scales + 0.0f * scales, lows + 0.0f * lows};
  }
  static Floats dot(const Weights& w, const Activations& x, Floats sum, Floats8& lows) {
    lows -= w.lows * load_as<Floats8>(x.sums);
    const Floats scales =
        __builtin_shufflevector(w.scales, w.scales, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) * x.scales[0];
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const int8_t* codes = x.codes + 128 * i;
      const Words low = level::dot_bytes(Words{}, (Words)(w.codes[i] & 15), load_as<Words>(codes));
      const Words high = level::dot_bytes(Words{}, (Words)(w.codes[i] >> 4), load_as<Words>(codes + 64));
      const Lanes16 lanes = {0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2};
      sum += as_floats(low) * __builtin_shuffle(scales, lanes + 4 * i);
      sum += as_floats(high) * __builtin_shuffle(scales, lanes + (4 * i + 1));
    }
    return sum;
  }
};

#endif

}  // namespace baracuda::quant
