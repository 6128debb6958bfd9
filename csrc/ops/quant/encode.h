// Values to GGUF's blocks, bit for bit as ggml and the `gguf` package round them. F::encode(x, b) reads value k as x(k)
// and puts byte k by b.put(k, byte).
//
// What is multiplied and then added to is rounded twice there; size() stands between so that no compiler joins the two
// to one operation. A block with NaN or an infinity gets a scale with which it decodes to NaN, where there is one:
// MXFP4 has none, and takes NaN as 0. Portable.
#pragma once
#include "ops/quant/decode.h"

namespace baracuda::quant {

BCU_FN float size(float x) { return math::fabs(x); }
BCU_FN float inverse(float d) { return d == 0.0f ? 0.0f : 1.0f / d; }

template <class B>
BCU_FN void put_half(B b, int at, float x) {
  uint32_t bits = half_bits(x);
  b.put(at, bits & 255u), b.put(at + 1, bits >> 8);
}

// The first of the values of the largest size; NaN where one is.
template <class X>
BCU_FN float largest(X x, int count) {
  float found = x(0);
  for (int k = 1; k < count; ++k) {
    float v = x(k);
    found = v != v || size(v) > size(found) ? v : found;
  }
  return found;
}
struct Range {
  float least, most;
};
template <class X>
BCU_FN Range range(X x, int count) {
  Range r;
  r.least = r.most = x(0);
  for (int k = 1; k < count; ++k) {
    float v = x(k);
    r.least = v != v || v < r.least ? v : r.least;
    r.most = v != v || v > r.most ? v : r.most;
  }
  return r;
}

// floor(x by + middle + 1/2) within 0 to 2 middle - 1: the code of a value around zero.
BCU_FN uint32_t around(float x, float by, int middle) {
  float v = x * by, shift = float(middle) + 0.5f;
  float code = v < 0.0f ? shift - size(v) : shift + size(v);
  code = code != code ? float(middle) : math::at_least(math::at_most(code, float(2 * middle - 1)), 0.0f);
  return uint32_t(int(code));
}
// floor(x by + 1/2), at most `most`, of a value that is not negative.
BCU_FN uint32_t above(float x, float by, int most) {
  float code = size(x * by) + 0.5f;
  return uint32_t(int(code != code ? 0.0f : math::at_most(code, float(most))));
}

// The nearest integer, halves away from zero, of a size up to 127; 0 of NaN. Without branches, so that loops become
// vectors.
BCU_FN int nearest(float x) {
  float v = size(x);
  v = v < 127.0f ? v : 127.0f;
  v = x == x ? v : 0.0f;
  int n = int(v);
  n += v - float(n) >= 0.5f ? 1 : 0;
  return x < 0.0f ? -n : n;
}

// Blocks around zero, and those above a minimum. Fifth bits of codes lie apart, after the scales.
template <int kMiddle, class X, class B>
BCU_FN void encode_around(X x, B b) {
  float d = largest(x, 32) / float(-kMiddle), by = inverse(d);
  uint32_t upper = 0;
  const int codes = kMiddle == 16 ? 6 : 2;
  put_half(b, 0, d);
  for (int i = 0; i < 16; ++i) {
    uint32_t low = around(x(i), by, kMiddle), high = around(x(i + 16), by, kMiddle);
    upper |= low >> 4 << i | high >> 4 << (i + 16);
    b.put(codes + i, (low & 15u) | (high & 15u) << 4);
  }
  for (int i = 0; i < codes - 2; ++i) b.put(2 + i, upper >> (8 * i) & 255u);
}
template <int kMost, class X, class B>
BCU_FN void encode_above(X x, B b) {
  Range r = range(x, 32);
  float d = (r.most - r.least) / float(kMost), by = inverse(d);
  uint32_t upper = 0;
  const int codes = kMost == 31 ? 8 : 4;
  put_half(b, 0, d), put_half(b, 2, r.least);
  for (int i = 0; i < 16; ++i) {
    uint32_t low = above(x(i) - r.least, by, kMost), high = above(x(i + 16) - r.least, by, kMost);
    upper |= low >> 4 << i | high >> 4 << (i + 16);
    b.put(codes + i, (low & 15u) | (high & 15u) << 4);
  }
  for (int i = 0; i < codes - 4; ++i) b.put(4 + i, upper >> (8 * i) & 255u);
}

template <int kFormat>
struct Encoder;
#define BCU_ENCODER(format, ...)   \
  template <>                      \
  struct Encoder<format> {         \
    template <class X, class B>    \
    BCU_FN void encode(X x, B b) { \
      __VA_ARGS__(x, b);           \
    }                              \
  };
BCU_ENCODER(kQ4_0, encode_around<8>)
BCU_ENCODER(kQ4_1, encode_above<15>)
BCU_ENCODER(kQ5_0, encode_around<16>)
BCU_ENCODER(kQ5_1, encode_above<31>)
#undef BCU_ENCODER
template <>
struct Encoder<kQ8_0> {
  template <class X, class B>
  BCU_FN void encode(X x, B b) {
    float d = size(largest(x, 32)) / 127.0f, by = inverse(d);
    put_half(b, 0, d);
    for (int k = 0; k < 32; ++k) b.put(2 + k, uint32_t(nearest(x(k) * by)) & 255u);
  }
};
template <>
struct Encoder<kMXFP4> {
  // floor(log2(most)) + 125 of the f32 that is nearest to the logarithm, which is whole a little below powers of two.
  BCU_FN uint32_t exponent(float most) {
    uint32_t bits = math::bit_cast<uint32_t>(most);
    int over = int(bits >> 23) - 126, below = int(0x800000u - (bits & 0x7fffffu));  // most = 2^over (1 - below 2^-24)
    int size = over > 0 ? over - 1 : -over, ulp = 0;  // 2^-23 of it is that of logarithms there
    for (int power = 1; power <= size; power *= 2) ulp = power;
    int e = over + 124 + (float(below) * 1.442695f <= float(ulp) ? 1 : 0);
    return e < 0 ? 0u : e > 253 ? 253u : uint32_t(e);
  }
  // The nearest number, of two the smaller one.
  BCU_FN uint32_t code(float x, float d) {
    float v = size(x);
    uint32_t code = (v > 0.5f * d ? 1u : 0u) + (v > 1.5f * d ? 1u : 0u) + (v > 2.5f * d ? 1u : 0u) +
                    (v > 3.5f * d ? 1u : 0u) + (v > 5.0f * d ? 1u : 0u) + (v > 7.0f * d ? 1u : 0u) +
                    (v > 10.0f * d ? 1u : 0u);
    return code != 0u && x < 0.0f ? code + 8u : code;
  }
  template <class X, class B>
  BCU_FN void encode(X x, B b) {
    float most = 0.0f;  // NaN is none
    for (int k = 0; k < 32; ++k) most = size(x(k)) > most ? size(x(k)) : most;
    uint32_t e = most == 0.0f ? 0u : exponent(most);
    float d = Blocks<kMXFP4>::power(e);
    b.put(0, e);
    for (int i = 0; i < 16; ++i) b.put(1 + i, code(x(i), d) | code(x(i + 16), d) << 4);
  }
};

}  // namespace baracuda::quant
