// The kernel of a CUDA text as the emulator runs it: what the fake cudart loads from what the fake NVRTC made.
#pragma once
#include "emulator/emulator.h"

#define BCU_ENTRY(body) BCU_ENTRY_OF body
#define BCU_ENTRY_OF(...)                                                                                 \
  static void run_fused(baracuda::emulator::Position at, void* shared, const void* params) {              \
    baracuda::simt::Context ctx{at};                                                                      \
    __VA_ARGS__::run(ctx, static_cast<float*>(shared), *static_cast<const __VA_ARGS__::Params*>(params)); \
  }                                                                                                       \
  extern "C" __attribute__((visibility("default")))                                                       \
  const baracuda::emulator::Kernel fused = {"fused", &run_fused, sizeof(__VA_ARGS__::Params),             \
                                            int(__VA_ARGS__::kShared) * sizeof(float), __VA_ARGS__::kThreads};
