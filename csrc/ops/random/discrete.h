// The exact mapping from Philox words to integers, coin tosses, permutations and samples: integer arithmetic, so that
// every backend gives the same.
#pragma once
#include "ops/random/math.h"

namespace baracuda::random {

BCU_FN uint64_t high_product(uint64_t a, uint64_t b) {
  uint64_t a0 = uint32_t(a), a1 = a >> 32, b0 = uint32_t(b), b1 = b >> 32;
  uint64_t left = a1 * b0, right = a0 * b1, middle = (a0 * b0 >> 32) + uint32_t(left) + uint32_t(right);
  return a1 * b1 + (left >> 32) + (right >> 32) + (middle >> 32);
}

// Two words of a block: the first two, or the others.
BCU_FN uint64_t wide_word(Words w, bool second) {
  return second ? uint64_t(w.w) << 32 | w.z : uint64_t(w.y) << 32 | w.x;
}

// Element `index` of a draw in which each takes half a block: a number below n, all with the same probability (Lemire,
// 2019). Words that would favour some are passed over: try k takes its words from the counter with k in its third word.
BCU_FN uint64_t below(uint64_t seed, uint64_t offset, uint64_t index, uint64_t n) {
  uint64_t counter = offset + index / 2;
  for (uint32_t k = 0;; ++k) {
    Words at;
    at.x = uint32_t(counter), at.y = uint32_t(counter >> 32), at.z = k, at.w = 0u;
    uint64_t x = wide_word(philox(at, uint32_t(seed), uint32_t(seed >> 32)), (index & 1u) != 0u), low = x * n;
    if (low >= n || low >= (uint64_t(0) - n) % n) return high_product(x, n);
  }
}

// How many of 2^32 words (2^64 for f64) come up heads, rounded up: p of them. p lies in [0, 1].
BCU_FN uint64_t heads_of(float p) {
  float scaled = p * 4294967296.0f;
  uint64_t whole = uint64_t(scaled);
  return whole + (float(whole) < scaled ? 1u : 0u);
}
BCU_FN bool heads(float p, uint32_t word) { return uint64_t(word) < heads_of(p); }
#if BCU_HAS_F64
BCU_FN uint64_t heads_of(double p) {
  double scaled = p * 4294967296.0;
  uint64_t whole = uint64_t(scaled);
  return whole + (double(whole) < scaled ? 1u : 0u);
}
BCU_FN bool heads(double p, uint64_t word) {
  double scaled = p * 0x1p64;
  if (p >= 1.0) return true;
  uint64_t whole = uint64_t(scaled);
  return word < whole + (double(whole) < scaled ? 1u : 0u);
}
#endif

// A permutation of n numbers that is worked out number by number: an unbalanced Feistel network over at least 2 n
// numbers, in which numbers not below n are sent on until they are. Each half changes twelve times. A coin exchanges 0
// and 1 first: halves of two bits and more make even permutations only, which shows where n is small.
enum Feistel : int { kRounds = 24, kKeyBlocks = 6 };
struct Shuffle {
  uint32_t key[kRounds];
  uint64_t n;
  uint32_t coin;
  uint32_t left_mask, right_mask;
  int32_t right;  // bits of the lower part
};
BCU_FN void make_shuffle(uint64_t seed, uint64_t offset, uint64_t n, BCU_THREAD Shuffle& s) {
  for (int b = 0; b < kKeyBlocks; ++b) {
    Words w = block_of(seed, offset + uint64_t(b));
    s.key[4 * b] = w.x, s.key[4 * b + 1] = w.y, s.key[4 * b + 2] = w.z, s.key[4 * b + 3] = w.w;
  }
  s.coin = block_of(seed, offset + uint64_t(kKeyBlocks)).x & 1u;
  int bits = 2;
  while (bits < 63 && (uint64_t(1) << bits) < 2 * n) ++bits;
  s.n = n;
  s.right = bits - bits / 2;
  s.left_mask = uint32_t((uint64_t(1) << (bits / 2)) - 1), s.right_mask = uint32_t((uint64_t(1) << s.right) - 1);
}
// T: a word, or on the CPU a vector of them.
template <class T>
BCU_FN T mixed(T v, uint32_t key) {
  v = (v ^ key) * 0x9E3779B1u;
  v = (v ^ v >> 16) * 0x85EBCA6Bu;
  v = (v ^ v >> 13) * 0xC2B2AE35u;
  return v ^ v >> 16;
}
BCU_FN uint64_t once(BCU_THREAD const Shuffle& s, uint64_t i) {
  i = i < 2 ? i ^ s.coin : i;
  uint32_t left = uint32_t(i >> s.right), right = uint32_t(i) & s.right_mask;
  for (int k = 0; k < kRounds; k += 2) {
    left ^= mixed(right, s.key[k]) & s.left_mask;
    right ^= mixed(left, s.key[k + 1]) & s.right_mask;
  }
  return uint64_t(left) << s.right | right;
}
BCU_FN uint64_t shuffled(BCU_THREAD const Shuffle& s, uint64_t i) {
  do i = once(s, i);
  while (i >= s.n);
  return i;
}

// Weights of samples: probabilities as integers, the largest of `bits` bits, rounded to nearest. They add up exactly,
// in any order. Values are finite and not negative.
template <class T>
struct Parts;  // of a number: biased exponent and significand
template <>
struct Parts<float> {
  enum : int { kBits = 24 };
  BCU_FN int32_t exponent(float v) {
    int32_t e = int32_t((math::bit_cast<uint32_t>(v) >> 23) & 0xffu);
    return e > 0 ? e : 1;
  }
  BCU_FN uint64_t significand(float v) {
    uint32_t b = math::bit_cast<uint32_t>(v);
    return (b & 0x7fffffu) | ((b >> 23 & 0xffu) != 0u ? 0x800000u : 0u);
  }
};
#if BCU_HAS_F64
template <>
struct Parts<double> {
  enum : int { kBits = 53 };
  BCU_FN int32_t exponent(double v) {
    int32_t e = int32_t((math::bit_cast<uint64_t>(v) >> 52) & 0x7ffu);
    return e > 0 ? e : 1;
  }
  BCU_FN uint64_t significand(double v) {
    uint64_t b = math::bit_cast<uint64_t>(v);
    return (b & 0xfffffffffffffu) | ((b >> 52 & 0x7ffu) != 0u ? uint64_t(1) << 52 : uint64_t(0));
  }
};
#endif
// Bits of the largest weight, so that n of them stay below 2^62.
BCU_FN int32_t weight_bits(int64_t n) {
  int32_t bits = 62;
  while (bits > 1 && (int64_t(1) << (62 - bits)) < n) --bits;
  return bits;
}
// `most`: the largest exponent among the values. Without a branch, so that processors do several at a time: shifting by
// 63 leaves nothing of a weight that is too small.
template <class C>
BCU_FN uint64_t weight_of(C v, int32_t most, int32_t bits) {
  int32_t up = bits - Parts<C>::kBits - (most - Parts<C>::exponent(v)), down = up < 0 ? -up : 0;
  down = down > 63 ? 63 : down;
  return ((Parts<C>::significand(v) << (up > 0 ? up : 0)) + ((uint64_t(1) << down) >> 1)) >> down;
}
template <class C>
BCU_FN bool is_weight(C v) {
  return v >= C(0) && v - v == C(0);
}
enum : int { kGroup = 64 };  // weights that are added up together

}  // namespace baracuda::random
