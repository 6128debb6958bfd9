// What GGUF's blocks are: bytes that hold 32 or 256 values as small integers with scales. Portable.
#pragma once
#include "baracuda/portable.h"

namespace baracuda::quant {

// ggml's numbers of its types.
enum Format : int32_t {
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kIQ1_M = 29,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
};

// A half from its bits, and the bits of the nearest half (ties to even; NaN is 0x7e00). Without the compilers' own half
// types, of which no two are spelled alike.
BCU_FN float half_value(uint32_t bits) {
  uint32_t rest = bits & 0x7fffu;
  float steps = float(int32_t(rest)) * math::bit_cast<float>(103u << 23);  // 2^-24
  float size = math::bit_cast<float>((rest << 13) + ((rest >= 0x7c00u ? 224u : 112u) << 23));
  size = rest < 0x400u ? steps : size;
  return math::bit_cast<float>(math::bit_cast<uint32_t>(size) | (bits & 0x8000u) << 16);
}
BCU_FN uint32_t half_bits(float x) {
  uint32_t bits = math::bit_cast<uint32_t>(x), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
  float sum = math::bit_cast<float>(rest) + 0.5f;  // leaves multiples of 2^-24 in the low bits, rounded
  uint32_t small = math::bit_cast<uint32_t>(sum) - 0x3f000000u;
  uint32_t normal = (rest - (112u << 23) + 0xfffu + (rest >> 13 & 1u)) >> 13;
  uint32_t found = rest < 0x38800000u ? small : rest >= 0x477ff000u ? 0x7c00u : normal;
  return rest > 0x7f800000u ? 0x7e00u : (sign | found);
}

}  // namespace baracuda::quant
