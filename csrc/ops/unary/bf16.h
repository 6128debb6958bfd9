// Functions of one bf16 in fewer operations: rounded to bf16 they are what ops/unary/math.h's are in float, which a
// test compares for every one of the 65536 numbers. For levels with AVX512_BF16 or its like, where nothing else bounds
// them.
#pragma once
#include "baracuda/math/trig.h"
#include "host/level.h"

#if BCU_LEVEL_BF16
namespace baracuda::unary {

// sin(h pi + r) is sin(r), negated for odd h; a polynomial for |r| <= pi/2, exact to 2^-25. |x| <= near_limit.
struct HalfTurns {
  // r = x - turns pi with pi in two parts, for turns that are integers or, kHalf, half of odd ones
  template <bool kHalf>
  static float sine(float x) {
    constexpr float kInverse = 0.318309886f, kHigh = 3.14159274f, kLow = 8.74227766e-08f;
    const float shift = math::detail::to_integer<float>();
    const float shifted = kHalf ? math::fma(x, kInverse, -0.5f) + shift : math::fma(x, kInverse, shift);
    const float turns = kHalf ? (shifted - shift) + 0.5f : shifted - shift;
    const float r = math::fma(turns, kLow, math::fma(-turns, kHigh, x)), z = r * r;
    const float p =
        math::fma(math::fma(math::fma(z, 2.63475158e-06f, -0.000198227382f), z, 0.0083332425f), z, -0.166666657f);
    const float y = r * math::fma(p, z, 1.0f);
    const uint32_t odd = math::bit_cast<uint32_t>(shifted) + (kHalf ? 1u : 0u);
    return math::bit_cast<float>(math::bit_cast<uint32_t>(y) ^ (odd << 31));
  }
};
inline float sin_of_bf16(float x) {
  const float y = HalfTurns::sine<false>(x);
  return math::fabs(x) < math::detail::trig_tiny(x) ? x : y;  // which also keeps -0
}
inline float cos_of_bf16(float x) { return HalfTurns::sine<true>(x); }

// A loop over stored bf16.
void gelu_of_bf16(const uint16_t* const* in, uint16_t* const* out, int64_t n, const void*);

}  // namespace baracuda::unary
#endif
