// Values to the TQ formats, bit for bit as ggml and the `gguf` package round them, and to IQ4_XS: scales of groups as
// encode_k.h finds them. IQ1, IQ2 and IQ3 are read only: their codes are what a search with a calibration finds.
// Portable.
#pragma once
#include "ops/quant/decode_grids.h"
#include "ops/quant/encode_k.h"

namespace baracuda::quant {

// 0, 1 or 2 for -1, 0 and 1: the nearest one, halves away from zero; 1 of NaN.
BCU_FN uint32_t third(float v) { return size(v) >= 0.5f ? (v < 0.0f ? 0u : 2u) : 1u; }

template <>
struct Encoder<kTQ1_0> {
  // The first byte whose digits these are.
  template <class X>
  BCU_FN uint32_t byte(X x, float by, int first, int apart, int count) {
    uint32_t number = 0u;
    for (int place = 0; place < 5; ++place)
      number = number * 3u + (place < count ? third(x(first + place * apart) * by) : 0u);
    return (number * 256u + 242u) / 243u;
  }
  template <class X, class B>
  BCU_FN void encode(X x, B b) {
    float d = size(largest(x, 256)), by = inverse(d);
    for (int k = 0; k < 32; ++k) b.put(k, byte(x, by, k, 32, 5));
    for (int k = 0; k < 16; ++k) b.put(32 + k, byte(x, by, 160 + k, 16, 5));
    for (int k = 0; k < 4; ++k) b.put(48 + k, byte(x, by, 240 + k, 4, 4));
    put_half(b, 52, d);
  }
};
template <>
struct Encoder<kTQ2_0> {
  template <class X, class B>
  BCU_FN void encode(X x, B b) {
    float d = size(largest(x, 256)), by = inverse(d);
    for (int k = 0; k < 64; ++k) {
      uint32_t byte = 0u;
      for (int run = 0; run < 4; ++run) byte |= third(x(128 * (k / 32) + 32 * run + k % 32) * by) << (2 * run);
      b.put(k, byte);
    }
    put_half(b, 64, d);
  }
};
// The value of the largest size of a group becomes -127, the first of the table.
template <>
struct Encoder<kIQ4_XS> {
  template <class X, class B>
  BCU_FN void encode(X x, B b) {
    float steps[8];
    for (int g = 0; g < 8; ++g) steps[g] = largest(part(x, 32 * g), 32) / -127.0f;
    float d = largest_of(steps, 8) / -32.0f, by = inverse(d);
    uint32_t upper = 0u, scales[8];
    for (int g = 0; g < 8; ++g) scales[g] = around(steps[g], by, 32), upper |= scales[g] >> 4 << (2 * g);
    put_half(b, 0, d + (d - d));  // NaN where it is not finite: no code stands for zero
    b.put(2, upper & 255u), b.put(3, upper >> 8);
    for (int g = 0; g < 4; ++g) b.put(4 + g, (scales[2 * g] & 15u) | (scales[2 * g + 1] & 15u) << 4);
    for (int g = 0; g < 8; ++g) {
      float step = inverse(as_half(d) * float(int(scales[g]) - 32));
      for (int i = 0; i < 16; ++i) {
        uint32_t low = Encoder<kIQ4_NL>::code(x(32 * g + i) * step);
        b.put(8 + 16 * g + i, low | Encoder<kIQ4_NL>::code(x(32 * g + i + 16) * step) << 4);
      }
    }
  }
};

}  // namespace baracuda::quant
