// Makes the lines of a family's metal.metal kernels of the .metal text, and names for the host. Comes after the bodies.
#pragma once
#include "simt/metal_instances.h"

using namespace baracuda;

#if !defined(__METAL_VERSION__)
#include "simt/metal_names.h"
#else

// Apple's compiler takes the attribute; the check on Linux knows kernels by a keyword.
#ifndef BCU_METAL_ENTRY
#define BCU_METAL_ENTRY(threads) [[kernel, max_total_threads_per_threadgroup(threads)]]
#endif

#define BCU_METAL_KERNEL(name, body)                                                                          \
  static_assert(sizeof(BCU_UNPACK body::Params) <= 4000, "a kernel's parameters are at most 4 KB");           \
  static_assert(BCU_UNPACK body::kShared <= 8188, "a kernel's shared memory is at most 32 KB");               \
  BCU_METAL_ENTRY((BCU_UNPACK body::kThreads))                                                                \
  void name(constant BCU_UNPACK body::Params& p [[buffer(0)]], uint tid [[thread_index_in_threadgroup]],      \
            uint3 bid [[threadgroup_position_in_grid]], uint3 bdim [[threads_per_threadgroup]],               \
            uint3 gdim [[threadgroups_per_grid]], uint lane [[thread_index_in_simdgroup]],                    \
            uint warp [[simdgroup_index_in_threadgroup]]) {                                                   \
    threadgroup float4 shared[(BCU_UNPACK body::kShared + 4) / 4];                                            \
    simt::Context ctx;                                                                                        \
    ctx.tid_ = tid, ctx.lane_ = lane, ctx.warp_ = warp, ctx.bdim_ = bdim.x, ctx.bid_ = bid, ctx.gdim_ = gdim; \
    BCU_UNPACK body::run(ctx, (threadgroup float*)shared, p);                                                 \
  }
#endif
