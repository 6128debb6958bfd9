// Values from places that a vector says: an instruction of levels from v3 on, of which GCC makes single loads.
#pragma once
#include "host/level.h"

namespace baracuda::level {

// What lies at those distances from p, one for each lane.
[[gnu::always_inline]] inline Floats gather(const float* p, Words offsets) {
#if defined(__AVX512F__)
  return (Floats)_mm512_mask_i32gather_ps(_mm512_setzero_ps(), kAll, (__m512i)offsets, p, 4);
#elif defined(__AVX2__)
  const __m256 all = (__m256)_mm256_set1_epi32(-1);
  return (Floats)_mm256_mask_i32gather_ps(_mm256_setzero_ps(), p, (__m256i)offsets, all, 4);
#else
  Floats v;
  for (int i = 0; i < kVectorBytes / 4; ++i) v[i] = p[static_cast<int32_t>(offsets[i])];
  return v;
#endif
}

}  // namespace baracuda::level
