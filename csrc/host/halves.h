// f16 and bf16 arrays to and from float, by the level's own instructions where it has them.
#pragma once
#include <cstdint>
#include <cstring>

#include "core/half.h"
#include "host/level.h"

namespace baracuda {

inline void bf16_to_float(const uint16_t* src, float* dst, int64_t n) {
  for (int64_t i = 0; i < n; ++i) dst[i] = bf16_to_float(src[i]);
}

inline void float_to_bf16(const float* src, uint16_t* dst, int64_t n) {
  int64_t i = 0;
#if BCU_LEVEL_BF16
  constexpr int64_t kWidth = level::kVectorBytes / sizeof(float);
  for (; i + 2 * kWidth <= n; i += 2 * kWidth) {
    level::Floats low, high;
    std::memcpy(&low, src + i, sizeof low), std::memcpy(&high, src + i + kWidth, sizeof high);
    level::store_bf16(dst + i, low, high);
  }
#endif
  for (; i < n; ++i) dst[i] = float_to_bf16(src[i]);
}

inline void f16_to_float(const uint16_t* src, float* dst, int64_t n) {
  int64_t i = 0;
#if BCU_LEVEL_F16
  constexpr int64_t kWidth = level::kVectorBytes / sizeof(float);
  for (; i + kWidth <= n; i += kWidth) {
    const level::Floats v = level::load_halves(src + i);
    std::memcpy(dst + i, &v, sizeof v);
  }
#endif
  for (; i < n; ++i) dst[i] = f16_to_float(src[i]);
}

inline void float_to_f16(const float* src, uint16_t* dst, int64_t n) {
  int64_t i = 0;
#if BCU_LEVEL_F16
  constexpr int64_t kWidth = level::kVectorBytes / sizeof(float);
  for (; i + kWidth <= n; i += kWidth) {
    level::Floats v;
    std::memcpy(&v, src + i, sizeof v);
    level::store_halves(dst + i, v);
  }
#endif
  for (; i < n; ++i) dst[i] = float_to_f16(src[i]);
}

}  // namespace baracuda
