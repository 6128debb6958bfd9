// submit() by the CUDA runtime.
#pragma once
#include <cuda_runtime_api.h>

#include "backends/cuda/device.h"

namespace baracuda::simt {

// A body with kBlocks says how many blocks a multiprocessor must hold; without it ptxas chooses, and may spill a few
// registers for one block more.
template <class Body>
constexpr int least_blocks() {
  if constexpr (requires { Body::kBlocks; })
    return Body::kBlocks;
  else
    return 0;
}

template <class Body>
__global__ void __launch_bounds__(Body::kThreads, least_blocks<Body>())
    entry(const __grid_constant__ typename Body::Params params) {
  __shared__ float4 shared[Body::kShared > 0 ? (Body::kShared + 3) / 4 : 1];
  Context ctx;
  Body::run(ctx, reinterpret_cast<float*>(shared), params);
}

template <class Body>
Status submit(const Launch& launch, Grid grid, int threads, const typename Body::Params& params) {
  static_assert(sizeof(params) <= kParameterBytes, "a kernel's parameters are at most 4 KB");
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return Status::Ok;
  cuda::DeviceGuard guard(launch.device);
  if (guard.status() != Status::Ok) return guard.status();
  dim3 blocks(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z));
  entry<Body><<<blocks, threads, 0, static_cast<cudaStream_t>(launch.stream)>>>(params);
  return cuda::check(cudaPeekAtLastError(), "kernel launch");
}

}  // namespace baracuda::simt
