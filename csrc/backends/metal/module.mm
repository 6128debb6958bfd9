// The metal module: the system's GPU, and the table of functions that the engine is given.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "backends/cpu/module.h"
#include "backends/metal/runtime.h"
#include "simt/families.h"
#include "simt/launch.h"

namespace baracuda::metal {
namespace {

thread_local char message[2048];

constexpr int64_t kMostPooled = int64_t{1} << 30;

// Bytes of memory that may wait to be used again: BARACUDA_METAL_POOL_BYTES, else a GiB.
int64_t most_pooled() {
  const char* given = std::getenv("BARACUDA_METAL_POOL_BYTES");
  return given && *given ? std::atoll(given) : kMostPooled;
}

// Families of GPUs by their newest number: 7 is M1's.
int32_t family_of(id<MTLDevice> device) {
  for (int32_t n = 9; n > 7; --n)
    if ([device supportsFamily:MTLGPUFamily(MTLGPUFamilyApple1 + n - 1)]) return n;
  return [device supportsFamily:MTLGPUFamilyApple7] ? 7 : 0;
}

Gpu* open_gpu() {
  @autoreleasepool {
    Own<id<MTLDevice>> device(MTLCreateSystemDefaultDevice());
    if (!device) return failed("there is no Metal device here"), nullptr;
    if (![device.get() supportsFamily:MTLGPUFamilyMetal3])
      return failed("%.60s: want a GPU of the Metal 3 family", [[device.get() name] UTF8String]), nullptr;
    auto* g = new Gpu;  // outlives every other object: work may be given while the process ends
    g->unified = [device.get() hasUnifiedMemory];
    g->most_pooled = most_pooled();
    g->main.queue = Own<id<MTLCommandQueue>>([device.get() newCommandQueue]);
    Block& status = g->status;
    status.buffer = Own<id<MTLBuffer>>([device.get() newBufferWithLength:sizeof(simt::Fault)
                                                                 options:MTLResourceStorageModeShared]);
    if (!g->main.queue || !status.buffer) {
      delete g;
      return failed("starting the Metal device: no command queue or no memory"), nullptr;
    }
    status.address = [status.buffer.get() gpuAddress], status.bytes = sizeof(simt::Fault);
    std::memset(status.contents(status.address), 0, sizeof(simt::Fault));
    g->device = std::move(device);
    return g;
  }
}

}  // namespace

Status failed(const char* format, ...) {
  va_list values;
  va_start(values, format);
  std::vsnprintf(message, sizeof message, format, values);
  va_end(values);
  return Status::Launch;
}

Status failed(const char* doing, NSError* error) {
  return failed("%s: %s", doing, error ? [[error localizedDescription] UTF8String] : "Metal does not say why");
}

const char* last_error() { return message; }

// Another attempt is made after a failure: the memory that was lacking may be there by then.
Gpu* gpu() {
  static std::mutex opening;
  static Gpu* opened = nullptr;
  std::lock_guard lock(opening);
  if (!opened) opened = open_gpu();
  return opened;
}

namespace {

int32_t count() { return gpu() ? 1 : 0; }

Status describe(int32_t, DeviceInfo* out) {
  BCU_METAL_ENTER {
    id<MTLDevice> device = g.device.get();
    std::snprintf(out->name, sizeof out->name, "%.63s", [[device name] UTF8String]);
    out->arch = family_of(device);
    out->memory = int64_t([device recommendedMaxWorkingSetSize]);
    return Status::Ok;
  }
}

Status allocate(int32_t, int64_t bytes, void** out) {
  BCU_METAL_ENTER {
    uint64_t address = 0;
    const Status status = allocate(g, lock, bytes, &address);
    if (status == Status::Ok) *out = reinterpret_cast<void*>(address);
    return status;
  }
}

Status release(int32_t, void* memory) {
  BCU_METAL_ENTER { return release(g, address_of(memory)); }
}

Status copy(int32_t, void* to, const void* from, int64_t bytes, CopyKind kind, void* stream) {
  BCU_METAL_ENTER { return copy(g, lock, stream_of(g, stream), to, from, bytes, kind); }
}

// There is one device only.
Status copy_between(int32_t, void* to, int32_t, const void* from, int64_t bytes, void* stream) {
  BCU_METAL_ENTER {
    Stream& s = stream_of(g, stream);
    const Status status = copy(g, lock, s, to, from, bytes, CopyKind::OnDevice);
    if (status != Status::Ok) return status;
    settle(g, lock, s);
    return told(g);
  }
}

Status fill(int32_t, void* to, int32_t byte, int64_t bytes, void* stream) {
  BCU_METAL_ENTER { return fill(g, stream_of(g, stream), address_of(to), byte, bytes); }
}

Status settled(Gpu& g, Lock& lock, void* stream) {
  if (stream)
    settle(g, lock, stream_of(g, stream));
  else
    settle_all(g, lock);
  trim(g, g.most_pooled);
  return told(g);
}

Status synchronize(int32_t, void* stream) {
  BCU_METAL_ENTER { return settled(g, lock, stream); }
}

Status take_fault(int32_t, void* stream, DeviceFault* out) {
  BCU_METAL_ENTER {
    Status status = settled(g, lock, stream);
    if (status != Status::Ok) return status;
    // Other streams' kernels may be about to write it.
    wait_until(g, lock, g.status.used);
    if ((status = told(g)) != Status::Ok) return status;
    char* word = g.status.contents(g.status.address);
    simt::Fault found;
    std::memcpy(&found, word, sizeof found);
    uint32_t raised = 0;
    std::memcpy(&raised, &found.raised, sizeof raised);
    if (!raised) return Status::Ok;
    *out = {static_cast<int32_t>(found.row),
            static_cast<int32_t>(found.row >> 32),
            {found.tensor, found.position, found.value, found.limit}};
    std::memset(word, 0, sizeof found);
    return Status::Ok;
  }
}

Status prepare(int32_t) { return gpu() ? Status::Ok : Status::Launch; }

}  // namespace
}  // namespace baracuda::metal

extern "C" BCU_API const baracuda::DeviceModule* baracuda_metal_module() {
  using namespace baracuda::metal;
  static constexpr baracuda::DeviceModule kModule = {.abi = baracuda::kModuleAbi,
                                                     .version = BCU_VERSION,
                                                     .name = "metal",
                                                     .families = baracuda::simt::kFamilies,
                                                     .n_families = int32_t(std::size(baracuda::simt::kFamilies)),
                                                     .count = &count,
                                                     .describe = &describe,
                                                     .allocate = &allocate,
                                                     .release = &release,
                                                     .copy = &copy,
                                                     .copy_between = &copy_between,
                                                     .fill = &fill,
                                                     .synchronize = &synchronize,
                                                     .take_fault = &take_fault,
                                                     .last_error = &last_error,
                                                     .prepare = &prepare,
                                                     .queues = &kQueues,
                                                     .attach = nullptr,
                                                     .objects = &kObjects,
                                                     .rehearse = &rehearse};
  return &kModule;
}
