// Sums of products of bytes, vector by vector, which level.h's dot products do with one factor for all lanes.
#pragma once
#include "host/level.h"

namespace baracuda::level {

// sum + a b of four 8-bit integers in each lane. Those of a are stored kBytesBias higher than they are.
#if BCU_LEVEL_QUADS
inline constexpr int kBytesBias = kQuadsSigned ? 0 : 128;
[[gnu::always_inline]] inline Words dot_bytes(Words sum, Words a, Words b) {
#if defined(__aarch64__)
  return (Words)vdotq_s32((int32x4_t)sum, vreinterpretq_s8_u32((uint32x4_t)a), vreinterpretq_s8_u32((uint32x4_t)b));
#else
  return (Words)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
#endif
}
#else
inline constexpr int kBytesBias = 0;
[[gnu::always_inline]] inline Words dot_bytes(Words sum, Words a, Words b) {
#if BCU_LEVEL_PAIRS
  typedef int16_t Shorts __attribute__((vector_size(kVectorBytes)));
  const Shorts low_a = (Shorts)a << 8 >> 8, low_b = (Shorts)b << 8 >> 8, high_a = (Shorts)a >> 8,
               high_b = (Shorts)b >> 8;
#if defined(__AVX512BW__)
  return sum + (Words)_mm512_madd_epi16((__m512i)low_a, (__m512i)low_b) +
         (Words)_mm512_madd_epi16((__m512i)high_a, (__m512i)high_b);
#elif defined(__AVX2__)
  return sum + (Words)_mm256_madd_epi16((__m256i)low_a, (__m256i)low_b) +
         (Words)_mm256_madd_epi16((__m256i)high_a, (__m256i)high_b);
#else
  return sum + (Words)_mm_madd_epi16((__m128i)low_a, (__m128i)low_b) +
         (Words)_mm_madd_epi16((__m128i)high_a, (__m128i)high_b);
#endif
#else
  typedef int32_t Ints __attribute__((vector_size(kVectorBytes)));
  for (int shift = 0; shift < 32; shift += 8) sum += (Words)(((Ints)(a << shift) >> 24) * ((Ints)(b << shift) >> 24));
  return sum;
#endif
}
#endif

#if BCU_LEVEL_EIGHTS
// 16 bytes as integers.
[[gnu::always_inline]] inline Words words_of_bytes(const void* p) {
  return (Words)_mm512_maskz_cvtepu8_epi32(kAll, _mm_loadu_si128(static_cast<const __m128i*>(p)));
}
#endif
// As many signed bytes as a vector has floats.
[[gnu::always_inline]] inline Floats floats_of_signed_bytes(const void* p) {
#if defined(__AVX512F__)
  return (Floats)_mm512_maskz_cvtepi32_ps(
      kAll, _mm512_maskz_cvtepi8_epi32(kAll, _mm_loadu_si128(static_cast<const __m128i*>(p))));
#elif defined(__AVX2__)
  return (Floats)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p))));
#else
  uint32_t four;
  std::memcpy(&four, p, sizeof four);
#if defined(__aarch64__)
  return (Floats)vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(four))))));
#else
  return (Floats)_mm_cvtepi32_ps(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(static_cast<int>(four))));
#endif
#endif
}
// p[0] to p[n - 1] and zeros, in a vector of 1- or 2-byte values; 0 < n < their number.
template <class Vec, class C>
[[gnu::always_inline]] inline Vec load_first_narrow(const C* p, int64_t n) {
#if defined(__AVX512BW__)
  if constexpr (sizeof(C) == 1) return Vec(_mm512_maskz_loadu_epi8((uint64_t{1} << n) - 1, p));
  if constexpr (sizeof(C) == 2) return Vec(_mm512_maskz_loadu_epi16(static_cast<__mmask32>((1u << n) - 1), p));
#else
  Vec v = {};
  std::memcpy(&v, p, static_cast<size_t>(n) * sizeof(C));
  return v;
#endif
}
// 16 bytes of a table of 16, by indices below 16.
[[gnu::always_inline]] inline void pick_bytes(const uint8_t* table, const uint8_t* at, uint8_t* to) {
#if defined(__aarch64__)
  vst1q_u8(to, vqtbl1q_u8(vld1q_u8(table), vld1q_u8(at)));
#else
  const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  const __m128i each = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(all, each));
#endif
}

}  // namespace baracuda::level
