// The vocabulary of simt.h in CUDA C++.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace baracuda::simt {

using f16 = __half;
using bf16 = __nv_bfloat16;

struct Context {
  BCU_METHOD uint32_t tid() const { return threadIdx.x; }
  BCU_METHOD uint32_t bdim() const { return blockDim.x; }
  BCU_METHOD uint32_t bid_x() const { return blockIdx.x; }
  BCU_METHOD uint32_t bid_y() const { return blockIdx.y; }
  BCU_METHOD uint32_t bid_z() const { return blockIdx.z; }
  BCU_METHOD uint32_t gdim_x() const { return gridDim.x; }
  BCU_METHOD uint32_t gdim_y() const { return gridDim.y; }
  BCU_METHOD uint32_t lane() const { return threadIdx.x & 31u; }
  BCU_METHOD uint32_t warp() const { return threadIdx.x >> 5; }
  BCU_METHOD uint32_t warps() const { return blockDim.x >> 5; }
};

BCU_DEVICE float widen(float x) { return x; }
BCU_DEVICE float widen(f16 x) { return __half2float(x); }
BCU_DEVICE float widen(bf16 x) { return __bfloat162float(x); }
BCU_DEVICE void narrow(float x, float& out) { out = x; }
BCU_DEVICE void narrow(float x, f16& out) { out = __float2half_rn(x); }
BCU_DEVICE void narrow(float x, bf16& out) { out = __float2bfloat16_rn(x); }

BCU_DEVICE void barrier(const Context&) { __syncthreads(); }
BCU_DEVICE void barrier_all(const Context&) { __syncthreads(); }
BCU_DEVICE void warp_sync(const Context&) { __syncwarp(); }

template <class T>
BCU_DEVICE T shuffle(const Context&, T v, uint32_t lane) {
  return __shfl_sync(0xffffffffu, v, lane);
}
template <class T>
BCU_DEVICE T shuffle_xor(const Context&, T v, uint32_t mask) {
  return __shfl_xor_sync(0xffffffffu, v, mask);
}
template <class T>
BCU_DEVICE T shuffle_down(const Context&, T v, uint32_t distance) {
  return __shfl_down_sync(0xffffffffu, v, distance);
}
template <class T>
BCU_DEVICE T shuffle_up(const Context&, T v, uint32_t distance) {
  return __shfl_up_sync(0xffffffffu, v, distance);
}

using AtomicU32 = uint32_t;
using AtomicF32 = float;
BCU_DEVICE uint32_t atomic_add(AtomicU32* counter, uint32_t v) { return atomicAdd(counter, v); }
BCU_DEVICE void atomic_add(AtomicF32* sum, float v) { atomicAdd(sum, v); }
BCU_DEVICE uint32_t atomic_exchange(AtomicU32* word, uint32_t v) { return atomicExch(word, v); }

BCU_DEVICE uint32_t mul_hi(uint32_t a, uint32_t b) { return __umulhi(a, b); }

}  // namespace baracuda::simt
