// The one kernel of a text that is compiled on the machine that runs it, called "fused": BCU_ENTRY((Body)) behind the
// bodies, in no namespace.
#pragma once
#include "simt/simt.h"

#if defined(__METAL_VERSION__)
#include "simt/metal_kernels.h"
#define BCU_ENTRY(body) BCU_METAL_KERNEL(fused, body)
#elif defined(__CUDACC__)
#define BCU_ENTRY(body) BCU_ENTRY_OF body
#define BCU_ENTRY_OF(...)                                                                    \
  extern "C" __global__ void __launch_bounds__(__VA_ARGS__::kThreads)                        \
      fused(const __grid_constant__ __VA_ARGS__::Params p) {                                 \
    __shared__ float4 shared[__VA_ARGS__::kShared > 0 ? (__VA_ARGS__::kShared + 3) / 4 : 1]; \
    baracuda::simt::Context ctx;                                                             \
    __VA_ARGS__::run(ctx, reinterpret_cast<float*>(shared), p);                              \
  }
#else
#include "simt/entry_host.h"
#endif
