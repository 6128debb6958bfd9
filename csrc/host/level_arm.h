// aarch64: Advanced SIMD, which all have (neon), with dot products of bytes and of bf16 (neon_dot).
#pragma once
#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#define BCU_LEVEL_F16 1
#define BCU_LEVEL_PAIRS 0
#define BCU_LEVEL_PARTS 0
#define BCU_LEVEL_EIGHTS 0
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#define BCU_LEVEL_BF16 1
#else
#define BCU_LEVEL_BF16 0
#endif
#if defined(__ARM_FEATURE_DOTPROD)
#define BCU_LEVEL_QUADS 1
#else
#define BCU_LEVEL_QUADS 0
#endif

namespace baracuda::level {

inline constexpr int kVectorBytes = 16, kRegisters = 32;

typedef float Floats __attribute__((vector_size(kVectorBytes)));
typedef uint32_t Words __attribute__((vector_size(kVectorBytes)));
typedef uint64_t Wides __attribute__((vector_size(kVectorBytes)));

// A vector of floats from f16, and back.
[[gnu::always_inline]] inline Floats load_halves(const uint16_t* p) {
  return (Floats)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}
[[gnu::always_inline]] inline void store_halves(uint16_t* p, Floats v) {
  vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)v)));
}

#if BCU_LEVEL_BF16
// Two vectors of floats as bf16.
[[gnu::always_inline]] inline void store_bf16(uint16_t* p, Floats low, Floats high) {
  const bfloat16x8_t both = vcvtq_high_bf16_f32(vcvtq_low_bf16_f32((float32x4_t)low), (float32x4_t)high);
  vst1q_u16(p, vreinterpretq_u16_bf16(both));
}
// Floats as the bf16 at even and at odd places.
[[gnu::always_inline]] inline void store_bf16_pairs(uint16_t* p, Floats even, Floats odd) {
  const uint16x8_t low = vreinterpretq_u16_bf16(vcvtq_low_bf16_f32((float32x4_t)even));
  const uint16x8_t high = vreinterpretq_u16_bf16(vcvtq_low_bf16_f32((float32x4_t)odd));
  vst1q_u16(p, vzip1q_u16(low, high));
}
// Whether a bit is set.
[[gnu::always_inline]] inline bool any(Words v) { return vmaxvq_u32((uint32x4_t)v) != 0; }
// sum + a b of pairs of bf16. Subnormal operands and sums count as zero; sums are rounded to odd.
[[gnu::always_inline]] inline Floats dot_bf16(Floats sum, uint32_t a, Words b) {
  const bfloat16x8_t pairs = vreinterpretq_bf16_u32(vdupq_n_u32(a));
  return (Floats)vbfdotq_f32((float32x4_t)sum, pairs, vreinterpretq_bf16_u32((uint32x4_t)b));
}
#endif

#if BCU_LEVEL_QUADS
// sum + a b of four 8-bit integers.
inline constexpr bool kQuadsSigned = true;
[[gnu::always_inline]] inline Words dot_quads(Words sum, uint32_t a, Words b) {
  const int8x16_t quads = vreinterpretq_s8_u32(vdupq_n_u32(a));
  return (Words)vdotq_s32((int32x4_t)sum, quads, vreinterpretq_s8_u32((uint32x4_t)b));
}
#endif

// The products of the lower halves of 64-bit lanes.
[[gnu::always_inline]] inline Wides multiply_low(Wides a, Wides b) {
  return (Wides)vmull_u32(vmovn_u64((uint64x2_t)a), vmovn_u64((uint64x2_t)b));
}

// Floats as doubles.
template <class Singles, class Doubles>
[[gnu::always_inline]] inline void widen(const Singles& from, Doubles& to) {
  to = __builtin_convertvector(from, Doubles);
}

// A line of 64 bytes, read whole.
[[gnu::always_inline]] inline void read_line(const void* src, void* line) { std::memcpy(line, src, 64); }

// An aligned line of 64 bytes. These processors see for themselves that a line is written whole.
[[gnu::always_inline]] inline void stream_line(void* dst, const void* src) { std::memcpy(dst, src, 64); }
inline void stream_fence() {}

}  // namespace baracuda::level
