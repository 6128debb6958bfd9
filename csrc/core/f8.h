// The 8-bit floats as codes 0 to 255, on every backend. f8e4m3 has 3 bits of significand, a bias of 7, no infinity and
// one NaN (0x7f); f8e5m2 has 2, a bias of 15, and infinities.
#pragma once
#include "baracuda/math/math.h"
#include "baracuda/portable.h"

namespace baracuda {

template <int kMantissa>
struct F8 {
  enum : uint32_t {
    kShift = 23 - kMantissa,
    kBias = kMantissa == 3 ? 7 : 15,
    kLargest = kMantissa == 3 ? 0x7e : 0x7b,
    kOverflow = kMantissa == 3 ? 0x7f : 0x7c,  // NaN, or infinity
  };

  BCU_FN float decode(uint32_t code) {
    uint32_t bits = code & 0x7fu;
    // Below 2^kMantissa codes count the smallest steps; GPUs may take floats that small for zero, so they are not made.
    float steps = float(int32_t(bits)) * math::bit_cast<float>((128u - kBias - kMantissa) << 23);
    float size = math::bit_cast<float>((bits << kShift) + ((127u - kBias) << 23));
    size = bits < (1u << kMantissa) ? steps : size;
    size = bits > kLargest ? math::infinity<float>() : size;
    size = bits > (kMantissa == 3 ? uint32_t(kLargest) : uint32_t(kOverflow)) ? math::quiet_nan<float>() : size;
    return (code & 0x80u) != 0u ? -size : size;
  }

  // To nearest, ties to even. What lies beyond the largest number is that number, or else NaN or infinity.
  BCU_FN uint32_t encode(float v, bool saturate) {
    uint32_t bits = math::bit_cast<uint32_t>(v), sign = bits >> 24 & 0x80u;
    bits &= 0x7fffffffu;
    float size = math::bit_cast<float>(bits);
    const uint32_t least = (128u - kBias) << 23;  // the smallest number with all bits of significand
    uint32_t normal =
        ((bits + ((1u << (kShift - 1)) - 1u) + (bits >> kShift & 1u)) >> kShift) - ((127u - kBias) << kMantissa);
    // Below it numbers are multiples of one step, of which rint counts how many.
    float steps = math::rint(size * math::bit_cast<float>((126u + kBias + kMantissa) << 23));
    uint32_t code = bits < least ? uint32_t(int32_t(bits < least ? steps : 0.0f)) : normal;
    uint32_t beyond = saturate ? uint32_t(kLargest) : uint32_t(kOverflow);
    code = bits >= 0x47800000u || code > kLargest ? beyond : code;
    return sign | (size != size ? 0x7fu : code);
  }
};

}  // namespace baracuda
