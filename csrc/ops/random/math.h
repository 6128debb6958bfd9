// Philox4x32-10 (Salmon et al., SC'11) and the exact mapping from its words to uniform and normal numbers. Everything
// but `log` in the normals is the same bits on every backend: each product below is exact, so it does not matter
// whether a compiler contracts it into a fused multiply-add.
#pragma once
#include "baracuda/math/math.h"
#include "baracuda/portable.h"

namespace baracuda::random {

struct Words {
  uint32_t x, y, z, w;
};

BCU_FN uint32_t high_word(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>((static_cast<uint64_t>(a) * b) >> 32);
}

enum Philox : uint32_t {
  kPhiloxM0 = 0xD2511F53u,
  kPhiloxM1 = 0xCD9E8D57u,  // multipliers
  kPhiloxW0 = 0x9E3779B9u,
  kPhiloxW1 = 0xBB67AE85u,  // key increments
};

// Ten rounds over a 128-bit counter (x lowest) with a 64-bit key.
BCU_FN Words philox(Words c, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    uint32_t hi0 = high_word(kPhiloxM0, c.x), lo0 = kPhiloxM0 * c.x;
    uint32_t hi1 = high_word(kPhiloxM1, c.z), lo1 = kPhiloxM1 * c.z;
    c = Words{hi1 ^ c.y ^ key0, lo1, hi0 ^ c.w ^ key1, lo0};
    key0 += kPhiloxW0;
    key1 += kPhiloxW1;
  }
  return c;
}

// The block that serves elements 4b .. 4b+3 (f64: 2b, 2b+1) of a draw: counter = offset + b, modulo 2^64.
BCU_FN Words block_of(uint64_t seed, uint64_t counter) {
  return philox(Words{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0u, 0u},
                static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
}

// The word of element `at` of a draw in which each takes one.
BCU_FN uint32_t word_of(Words w, int64_t at) {
  uint32_t lower = (at & 1) != 0 ? w.y : w.x, upper = (at & 1) != 0 ? w.w : w.z;
  return (at & 2) != 0 ? upper : lower;
}

// A uniform number u = hi + lo in [0, 1): 24 bits for f32 (hi the upper 12), 53 for f64 (hi the upper 26).
template <class T>
struct Fraction {
  T hi, lo;
};
BCU_FN Fraction<float> fraction(uint32_t w) {
  return {static_cast<float>(static_cast<int32_t>(w >> 20)) * 2.44140625e-4f,
          static_cast<float>(static_cast<int32_t>((w >> 8) & 0xFFFu)) * 5.9604644775390625e-8f};
}
#if BCU_HAS_F64
BCU_FN Fraction<double> fraction(uint32_t low_word, uint32_t top_word) {
  return {static_cast<double>(static_cast<int32_t>(top_word >> 6)) * 0x1p-26,
          static_cast<double>(static_cast<int32_t>(low_word >> 5)) * 0x1p-53};
}
#endif

// y = low + u * span, cut to [bottom, top]: the least stored value >= low and the greatest < high, so that rounding
// never reaches `high`. span = span_hi + span_lo, span_hi being span rounded to 12 bits (f64: 26).
template <class T>
struct Interval {
  T low, span_hi, span_lo, bottom, top;
};
template <class T>
BCU_FN T uniform(Fraction<T> u, BCU_THREAD const Interval<T>& to) {
  T rest = u.hi * to.span_lo + (u.lo * to.span_hi + u.lo * to.span_lo);
  T y = to.low + (u.hi * to.span_hi + rest);
  y = y < to.bottom ? to.bottom : y;
  return y > to.top ? to.top : y;
}

// span with the lower half of its significand rounded away: 12 bits are left (f64: 26).
template <class T>
BCU_FN T upper_bits(T span) {
  using Uint = typename math::FloatTraits<T>::Uint;
  Uint dropped = Uint(1) << math::FloatTraits<T>::kLowHalfBits;
  Uint bits = math::bit_cast<Uint>(span) + dropped / 2;
  return math::bit_cast<T>(Uint(bits & ~(dropped - 1)));
}

// The stored value next to `v` towards -inf or +inf, v being the bits of a finite or infinite number.
template <class Bits>
BCU_FN Bits step(Bits v, bool up) {
  Bits sign = Bits(Bits(1) << (8 * sizeof(Bits) - 1));
  if ((v & Bits(~sign)) == 0) return up ? Bits(1) : Bits(sign | 1);
  bool grow = ((v & sign) != 0) != up;
  return Bits(grow ? v + 1 : v - 1);
}

template <class T>
struct Moments {
  T mean, std;
};

// cos and sin of x quarter turns, |x| <= 1/2: fits of (cos(pi x / 2) - 1) / z and (sin(pi x / 2) / x - pi / 2) / z in z
// = x^2.
template <class T>
struct Rotation {
  T cos, sin;
};
BCU_FN Rotation<float> rotation(float x) {
  float z = x * x;
  float c = math::detail::horner(z, -1.23370055f, 0.25366941f, -0.0208615283f, 0.000906739898f);
  float s = math::detail::horner(z, -0.645964097f, 0.0796926123f, -0.00468147497f, 0.000158651513f);
  return {1.0f + z * c, 1.57079637f * x + x * (z * s - 4.37113900e-8f)};
}
#if BCU_HAS_F64
BCU_FN Rotation<double> rotation(double x) {
  double z = x * x;
  double c =
      math::detail::horner(z, -1.2337005501361698, 0.25366950790104782, -0.020863480763340773, 0.00091926027454684462,
                           -2.5202039028029176e-5, 4.7106784055052271e-7, -6.3293963449674235e-9);
  double s = math::detail::horner(z, -0.64596409750624617, 0.079692626246144239, -0.0046817541342542077,
                                  0.00016044116661409424, -3.5987029509735105e-6, 5.6422253691635283e-8);
  return {1.0 + z * c, 1.5707963267948966 * x + x * (z * s + 6.1232339957367659e-17)};
}
#endif

// A pair of normal numbers (Box-Muller): sqrt(-2 log(u)) times cos and sin of q + x quarter turns. u lies in (0, 1].
template <class T>
struct Normals {
  T first, second;
};
template <class T>
BCU_FN Normals<T> box_muller(T u, uint32_t q, T x) {
  T r = math::sqrt(T(-2) * math::log(u));
  Rotation<T> a = rotation(x);
  bool odd = (q & 1u) != 0;
  T c = odd ? a.sin : a.cos, s = odd ? a.cos : a.sin;
  return {r * (((q + 1u) & 2u) != 0 ? -c : c), r * ((q & 2u) != 0 ? -s : s)};
}

// The angle is the word's 2^-32 of a turn: the nearest quarter q, and what is left over in units of 2^-30 quarters.
BCU_FN uint32_t quarter(uint32_t angle) { return (angle + 0x20000000u) >> 30; }
BCU_FN int32_t beyond_quarter(uint32_t angle) { return static_cast<int32_t>(angle - (quarter(angle) << 30)); }

// f32: u has 31 bits of one word, rounded to nearest; the angle the 32 of the next.
BCU_FN Normals<float> normals(uint32_t radius, uint32_t angle) {
  float u = static_cast<float>(static_cast<int32_t>(radius >> 1)) * 4.656612873077392578125e-10f +
            2.3283064365386962890625e-10f;
  return box_muller(u, quarter(angle), static_cast<float>(beyond_quarter(angle)) * 9.31322574615478515625e-10f);
}
#if BCU_HAS_F64
// f64: u has 53 bits of two words, plus one unit; the angle the upper 53 bits of the other two.
BCU_FN Normals<double> normals(Words w) {
  double u = static_cast<double>(static_cast<int32_t>(w.y >> 6)) * 0x1p-26 +
             static_cast<double>(static_cast<int32_t>((w.x >> 5) + 1u)) * 0x1p-53;
  double x = static_cast<double>(beyond_quarter(w.w)) * 0x1p-30 +
             static_cast<double>(static_cast<int32_t>(w.z >> 11)) * 0x1p-51;
  return box_muller(u, quarter(w.w), x);
}
#endif

}  // namespace baracuda::random
