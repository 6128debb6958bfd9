// What a product with quantized weights makes of its activations when it quantizes them. Portable.
#pragma once
#include "ops/quant/encode.h"

namespace baracuda::quant {

// The scale of 8-bit activations of a block, and what turns values to codes: `most` is the bits of the largest size.
// 0 where the scale would be below the smallest normal number, NaN where a value is no number.
struct Step {
  float scale, by;
};
BCU_FN Step step_of(uint32_t most) {
  Step s;
  s.scale = math::bit_cast<float>(most) / 127.0f;
  s.scale = s.scale < math::bit_cast<float>(1u << 23) ? 0.0f : s.scale;
  s.by = inverse(s.scale);
  s.scale = most >= 0x7f800000u ? math::bit_cast<float>(0x7fc00000u) : s.scale;
  return s;
}
// NaN for what is not finite: integers between 0 and an infinite scale would hide it.
BCU_FN float finite(float scale) { return scale * 0.0f + scale; }

}  // namespace baracuda::quant
