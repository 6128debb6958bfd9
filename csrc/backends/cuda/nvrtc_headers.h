// What texts of kernels include that NVRTC does not have by itself: integers of fixed size, and the half types with the
// conversions that simt/target_cuda.h names. Nothing of a CUDA toolkit is needed on the machine.
#pragma once

namespace baracuda::cuda::nvrtc {

inline constexpr const char* kHeaderNames[] = {"cmath", "cstdint", "cuda_fp16.h", "cuda_bf16.h"};
inline constexpr const char* kHeaders[] = {"#pragma once\n",
                                           R"text(#pragma once
using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
using uintptr_t = unsigned long long;
)text",
                                           R"text(#pragma once
struct __align__(2) __half {
  unsigned short bits;
};
static __device__ __forceinline__ float __half2float(__half x) {
  float v;
  asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(x.bits));
  return v;
}
static __device__ __forceinline__ __half __float2half_rn(float v) {
  __half x;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(x.bits) : "f"(v));
  return x;
}
)text",
                                           R"text(#pragma once
struct __align__(2) __nv_bfloat16 {
  unsigned short bits;
};
static __device__ __forceinline__ float __bfloat162float(__nv_bfloat16 x) {
  return __uint_as_float(static_cast<unsigned int>(x.bits) << 16);
}
static __device__ __forceinline__ __nv_bfloat16 __float2bfloat16_rn(float v) {
  __nv_bfloat16 x;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(x.bits) : "f"(v));
  return x;
}
)text"};
static_assert(sizeof kHeaderNames == sizeof kHeaders);

}  // namespace baracuda::cuda::nvrtc
