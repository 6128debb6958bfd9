// submit() of the emulated metal module: the kernel that the body is in the .metal text runs, not the body.
#pragma once
#include <cstdio>
#include <cstdlib>

#include "emulator/emulator.h"
#include "simt/metal_names.h"

namespace baracuda::emulator {

// The kernel of that name in the texts; null when there is none.
const Kernel* metal_kernel(const char* name);

// Ends the process where a text and the launchers were made from different sources.
inline const Kernel& metal_kernel_of(const char* name, size_t param_bytes, uint32_t threads) {
  const Kernel* kernel = metal_kernel(name);
  if (kernel && kernel->param_bytes == param_bytes && kernel->most_threads == threads) return *kernel;
  std::fprintf(stderr, "the Metal text has %s %s\n", kernel ? "another" : "no", name);
  std::abort();
}

}  // namespace baracuda::emulator

namespace baracuda::simt {

template <class Body>
Status submit(const Launch& launch, Grid grid, int threads, const typename Body::Params& params) {
  static const emulator::Kernel& kernel =
      emulator::metal_kernel_of(kMetalName<Body>, sizeof params, uint32_t(Body::kThreads));
  return emulator::enqueue(launch, kernel, grid.x, grid.y, grid.z, threads, &params);
}

}  // namespace baracuda::simt
