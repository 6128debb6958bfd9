// The emulated metal module: the device of the fake CUDA runtime under another name, and the kernels of the .metal
// texts.
#include <algorithm>
#include <cstring>
#include <span>

#define baracuda_cuda_module baracuda_fake_module
#include "backends/cuda/device.cu"
#undef baracuda_cuda_module
#include "backends/cuda/queues.cu"

#include "emulator/emulator.h"

namespace baracuda::emulator {

#define BCU_TEXT(name)                     \
  extern const Kernel kMetalText_##name[]; \
  extern const uint32_t kMetalTextCount_##name;
#include "metal_texts.inc"
#undef BCU_TEXT

const Kernel* metal_kernel(const char* name) {
#define BCU_TEXT(name) {kMetalText_##name, kMetalTextCount_##name},
  const std::span<const Kernel> texts[] = {
#include "metal_texts.inc"
  };
#undef BCU_TEXT
  for (auto text : texts)
    for (const Kernel& kernel : text)
      if (std::strcmp(kernel.name, name) == 0) return &kernel;
  return nullptr;
}

}  // namespace baracuda::emulator

extern "C" BCU_API const baracuda::DeviceModule* baracuda_metal_module() {
  static const baracuda::DeviceModule module = [] {
    baracuda::DeviceModule m = *baracuda_fake_module();
    m.name = "metal";
    m.count = [] { return std::min(1, baracuda_fake_module()->count()); };
    return m;
  }();
  return &module;
}
