// submit() by the emulator: the launch is checked as CUDA would and waits on its stream, on the fake CUDA runtime.
#pragma once
#include <type_traits>

#include "emulator/emulator.h"

namespace baracuda::emulator {

// Puts a kernel on the stream of the call. Its parameters are copied.
Status enqueue(const Launch& launch, const Kernel& kernel, int64_t x, int64_t y, int64_t z, int threads,
               const void* params);

}  // namespace baracuda::emulator

namespace baracuda::simt {

template <class Body>
void run_body(emulator::Position at, void* shared, const void* params) {
  Context ctx{at};
  Body::run(ctx, static_cast<float*>(shared), *static_cast<const typename Body::Params*>(params));
}

template <class Body>
constexpr const char* body_name() {
  return __PRETTY_FUNCTION__;
}

template <class Body>
inline constexpr emulator::Kernel kKernel{body_name<Body>(), &run_body<Body>, sizeof(typename Body::Params),
                                          int(Body::kShared) * sizeof(float), Body::kThreads};

template <class Body>
Status submit(const Launch& launch, Grid grid, int threads, const typename Body::Params& params) {
  static_assert(sizeof(params) <= 4000, "a kernel's parameters are at most 4 KB");
  static_assert(std::is_trivially_copyable_v<typename Body::Params>);
  static_assert(int(Body::kThreads) % 32 == 0 && int(Body::kThreads) <= int(emulator::kMaxThreads));
  static_assert(int(Body::kShared) * sizeof(float) <= 48 * 1024, "a block has 48 KB of shared memory");
  return emulator::enqueue(launch, kKernel<Body>, grid.x, grid.y, grid.z, threads, &params);
}

}  // namespace baracuda::simt
