// x86-64: SSE4.2 (v2), AVX2 with FMA and F16C (v3), AVX-512 (v4), AVX-512 with VNNI and BF16 (v4x).
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/half.h"

#define BCU_LEVEL_PAIRS 1
#if defined(__F16C__)
#define BCU_LEVEL_F16 1
#else
#define BCU_LEVEL_F16 0
#endif
#if defined(__AVX512F__)
#define BCU_LEVEL_PARTS 1
#define BCU_LEVEL_EIGHTS 1
#else
#define BCU_LEVEL_PARTS 0
#define BCU_LEVEL_EIGHTS 0
#endif
#if defined(__AVX512BF16__)
#define BCU_LEVEL_BF16 1
#else
#define BCU_LEVEL_BF16 0
#endif
#if defined(__AVX512VNNI__)
#define BCU_LEVEL_QUADS 1
#else
#define BCU_LEVEL_QUADS 0
#endif

namespace baracuda::level {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64, kRegisters = 32;
// The unmasked intrinsics of g++ 12 warn about their own undefined operand; under a full mask it is one instruction,
// too.
inline constexpr __mmask16 kAll = 0xffff;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32, kRegisters = 16;
#else
inline constexpr int kVectorBytes = 16, kRegisters = 16;
#endif

typedef float Floats __attribute__((vector_size(kVectorBytes)));
typedef uint32_t Words __attribute__((vector_size(kVectorBytes)));
typedef uint64_t Wides __attribute__((vector_size(kVectorBytes)));

#if BCU_LEVEL_F16
// A vector of floats from f16, and back.
[[gnu::always_inline]] inline Floats load_halves(const uint16_t* p) {
#if defined(__AVX512F__)
  return (Floats)_mm512_maskz_cvtph_ps(kAll, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#else
  return (Floats)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#endif
}
[[gnu::always_inline]] inline void store_halves(uint16_t* p, Floats v) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
#if defined(__AVX512F__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_maskz_cvtps_ph(kAll, (__m512)v, kNearest));
#else
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph((__m256)v, kNearest));
#endif
}
#endif

#if BCU_LEVEL_EIGHTS
typedef float Floats8 __attribute__((vector_size(32)));
// Eight bytes as floats, the lowest first.
[[gnu::always_inline]] inline Floats8 floats_of_bytes(uint64_t bytes) {
  return (Floats8)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(bytes))));
}
// Two neighbouring halves, each in all lanes.
[[gnu::always_inline]] inline void two_halves(const void* p, Floats8& first, Floats8& second) {
  int32_t bits;
  std::memcpy(&bits, p, sizeof bits);
  const __m128 both = _mm_cvtph_ps(_mm_cvtsi32_si128(bits));
  first = (Floats8)_mm256_broadcastss_ps(both);
  second = (Floats8)_mm256_broadcastss_ps(_mm_movehdup_ps(both));
}
#endif

#if BCU_LEVEL_BF16
// Two vectors of floats as bf16. The instruction takes subnormal numbers for zeros: those go through the integer code.
[[gnu::always_inline]] inline void store_bf16(uint16_t* p, Floats low, Floats high) {
  const __mmask16 tiny_low = _mm512_fpclass_ps_mask((__m512)low, 0x20);
  const __mmask16 tiny_high = _mm512_fpclass_ps_mask((__m512)high, 0x20);
  if (_kortestz_mask16_u8(tiny_low, tiny_high)) [[likely]] {
    _mm512_storeu_si512(p, (__m512i)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low));
    return;
  }
  float x[32];
  std::memcpy(x, &low, sizeof low), std::memcpy(x + 16, &high, sizeof high);
  for (int i = 0; i < 32; ++i) p[i] = float_to_bf16(x[i]);
}
// Floats of which none is subnormal, as the bf16 at even and at odd places.
[[gnu::always_inline]] inline void store_bf16_pairs(uint16_t* p, Floats even, Floats odd) {
  typedef uint16_t Halves __attribute__((vector_size(kVectorBytes)));
  constexpr Halves kPlaces = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                              8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i both = (__m512i)_mm512_cvtne2ps_pbh((__m512)odd, (__m512)even);
  _mm512_storeu_si512(p, _mm512_maskz_permutexvar_epi16(~__mmask32{0}, (__m512i)kPlaces, both));
}
// Whether a bit is set.
[[gnu::always_inline]] inline bool any(Words v) { return _mm512_test_epi32_mask((__m512i)v, (__m512i)v) != 0; }
// sum + a b of pairs of bf16. Subnormal operands and sums count as zero.
[[gnu::always_inline]] inline Floats dot_bf16(Floats sum, uint32_t a, Words b) {
  return (Floats)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32(static_cast<int>(a)), (__m512bh)b);
}
#endif

// sum + a b of pairs of 16-bit integers.
[[gnu::always_inline]] inline Words dot_pairs(Words sum, uint32_t a, Words b) {
#if defined(__AVX512F__)
  return sum + (Words)_mm512_madd_epi16(_mm512_set1_epi32(static_cast<int>(a)), (__m512i)b);
#elif defined(__AVX2__)
  return sum + (Words)_mm256_madd_epi16(_mm256_set1_epi32(static_cast<int>(a)), (__m256i)b);
#else
  return sum + (Words)_mm_madd_epi16(_mm_set1_epi32(static_cast<int>(a)), (__m128i)b);
#endif
}

#if BCU_LEVEL_QUADS
// sum + a b of four 8-bit integers, those of a unsigned.
inline constexpr bool kQuadsSigned = false;
[[gnu::always_inline]] inline Words dot_quads(Words sum, uint32_t a, Words b) {
  return (Words)_mm512_dpbusd_epi32((__m512i)sum, _mm512_set1_epi32(static_cast<int>(a)), (__m512i)b);
}
#endif

#if BCU_LEVEL_PARTS
// p[0] to p[n - 1] and zeros, in a vector of 4- or 8-byte values.
template <class Vec, class C>
[[gnu::always_inline]] inline Vec load_first(const C* p, int64_t n) {
  if constexpr (sizeof(C) == 4) return Vec(_mm512_maskz_loadu_epi32(static_cast<__mmask16>((1u << n) - 1), p));
  if constexpr (sizeof(C) == 8) return Vec(_mm512_maskz_loadu_epi64(static_cast<__mmask8>((1u << n) - 1), p));
}
#endif

// The products of the lower halves of 64-bit lanes, one instruction that GCC does not find by itself.
[[gnu::always_inline]] inline Wides multiply_low(Wides a, Wides b) {
#if defined(__AVX512F__)
  return (Wides)_mm512_maskz_mul_epu32(0xFF, (__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  return (Wides)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#else
  return (Wides)_mm_mul_epu32((__m128i)a, (__m128i)b);
#endif
}

// Floats as doubles: one instruction, of which GCC 12 makes four. (By reference: without AVX-512 vectors of 64 bytes
// cannot be passed.)
template <class Singles, class Doubles>
[[gnu::always_inline]] inline void widen(const Singles& from, Doubles& to) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Doubles) == 64) {
    to = (Doubles)_mm512_maskz_cvtps_pd(0xFF, (__m256)from);
    return;
  }
#endif
#if defined(__AVX__)
  if constexpr (sizeof(Doubles) == 32) {
    to = (Doubles)_mm256_cvtps_pd((__m128)from);
    return;
  }
#endif
  to = __builtin_convertvector(from, Doubles);
}

// A line of 64 bytes, read whole: a load that the compiler cannot give a mask.
[[gnu::always_inline]] inline void read_line(const void* src, void* line) {
#if defined(__AVX512F__)
  __m512i whole = _mm512_loadu_si512(src);
  asm("" : "+v"(whole));
  _mm512_storeu_si512(line, whole);
#else
  std::memcpy(line, src, 64);
#endif
}

// An aligned line of 64 bytes past the caches; not ordered with other stores until the fence.
[[gnu::always_inline]] inline void stream_line(void* dst, const void* src) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(dst), _mm512_loadu_si512(src));
#else
  const __m128i* s = static_cast<const __m128i*>(src);
  for (int i = 0; i < 4; ++i) _mm_stream_si128(static_cast<__m128i*>(dst) + i, _mm_loadu_si128(s + i));
#endif
}
inline void stream_fence() { _mm_sfence(); }

}  // namespace baracuda::level
