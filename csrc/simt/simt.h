// The vocabulary of kernel bodies: one source that is CUDA C++, the Metal shading language and, in the tests' emulator,
// host C++. A body is a struct:
//
//   template <class T>
//   struct Softmax {
//     struct Params { BCU_GLOBAL const T* x; BCU_GLOBAL T* y; int64_t rows, length; };  // plain data, no references
//     enum : int { kThreads = 256, kShared = 32 };  // most threads of a block; floats of shared memory
//     BCU_FN void run(BCU_THREAD const Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) { ... }
//   };
//
// Rules: C++14 without std::, virtual, recursion, exceptions, lambdas or function pointers; double only in templates
// that Metal never instantiates; every pointer and reference names its address space; f16 and bf16 are storage types
// (widen, narrow); float literals carry an f or come from T(...); barriers and shuffles in block-uniform control flow
// only, so no early return before one; blocks are one-dimensional, a multiple of 32 threads, warps have 32 lanes.
#pragma once
#include "baracuda/portable.h"

// A target provides, in namespace baracuda::simt:
//   Context   tid() bdim() bid_x() bid_y() bid_z() gdim_x() gdim_y() lane() warp() warps()
//   barrier(ctx)      orders shared memory among the threads of a block
//   barrier_all(ctx)  orders shared and global memory among the threads of a block
//   warp_sync(ctx)    orders shared memory among the lanes of a warp; shuffles order nothing
//   shuffle(ctx, v, lane), shuffle_xor(ctx, v, mask), shuffle_down(ctx, v, distance), shuffle_up(ctx, v, distance):
//                     4 or 8 byte values; past the ends the result is not to be read
//   atomic_add(counter, v) of uint32_t (returns the old value) and float; atomic_exchange(counter, v) of uint32_t
//   SquareMatrix (simt/square_matrix.h) on Metal
//   f16, bf16; widen(x) to float; narrow(float, thread f16&) and (float, thread bf16&), to nearest even, NaN kept
// Whoever compiles bodies as host C++ brings simt/target_host.h, simt/mma_host.h and simt/submit_host.h on its include
// path: there is none here, as nothing that is shipped runs them so.
#if defined(__METAL_VERSION__)
#include "simt/target_metal.h"
#elif defined(__CUDACC__)
#include "simt/target_cuda.h"
#elif defined(BCU_METAL_LAUNCHERS)
#include "simt/target_names.h"
#else
#include "simt/target_host.h"
#endif

#include "simt/element.h"
#include "simt/reduce.h"
