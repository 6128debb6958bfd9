// Kernels from text, which are compiled when a plan is selected, and their launches.
#include "backends/metal/runtime.h"
#include "simt/compiled.h"

namespace baracuda::simt {

struct CompiledKernel {
  const metal::Pipeline* pipeline = nullptr;
  uint32_t most_threads = 0;
};

}  // namespace baracuda::simt

namespace baracuda::metal {
namespace {

// By their texts. They outlive every other object: work may be given while the process ends.
std::map<std::string, simt::CompiledKernel>& kernels() {
  static auto* all = new std::map<std::string, simt::CompiledKernel>;
  return *all;
}

constexpr const char* kKernel = "fused";  // simt/entry.h

const simt::CompiledKernel* kernel_of(Gpu& g, const std::string& text) {
  const auto known = kernels().find(text);
  if (known != kernels().end()) return &known->second;
  const Pipeline* made = pipeline_of_text(g, text, {kKernel, 0, 0});
  if (!made) return nullptr;
  const auto most = static_cast<uint32_t>([state_of(*made) maxTotalThreadsPerThreadgroup]);
  return &kernels().emplace(text, simt::CompiledKernel{made, most}).first->second;
}

}  // namespace
}  // namespace baracuda::metal

namespace baracuda::simt {

Status compile(int32_t, const std::string& text, const CompiledKernel** out, Reason*) {
  using namespace metal;
  BCU_METAL_ENTER {
    *out = kernel_of(g, text);
    return *out ? Status::Ok : Status::Launch;
  }
}

Status submit_compiled(const Launch& launch, const CompiledKernel& kernel, Grid grid, int threads, const void* params,
                       size_t bytes) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return Status::Ok;
  metal::Entry entry{metal::kKernel, kernel.most_threads, bytes, kernel.pipeline};
  return metal::submit(launch, entry, {grid.x, grid.y, grid.z}, threads, params);
}

}  // namespace baracuda::simt
