// The CUDA runtime's functions on the host: devices, memory, copies and streams. Nothing runs before somebody waits for
// it, so that a missing wait shows as memory that nobody has written.
#include <cstdio>
#include <cstring>
#include <vector>

#include "emulator/fakecuda/runtime.h"

using namespace baracuda::emulator;

namespace {

// The allocation that holds all of a range, or null with the error raised.
Allocation* range(const void* p, size_t bytes, const char* what) {
  Runtime& r = Runtime::get();
  Allocation* a = r.heap.find(p);
  auto* c = static_cast<const char*>(p);
  if (!a || c + bytes > a->data + a->bytes) {
    std::string where = r.heap.describe(p);
    r.raise(cudaErrorInvalidValue,
            std::string(what) + " of " + std::to_string(bytes) +
                " bytes is not in one allocation: " + (where.empty() ? "not device memory" : "it begins at " + where));
    return nullptr;
  }
  if (a->device == current_device()) return a;
  r.raise(cudaErrorInvalidValue, std::string(what) + " is on device " + std::to_string(a->device) + ", current is " +
                                     std::to_string(current_device()));
  return nullptr;
}

bool on_host(const void* p, const char* what) {
  std::string where = Runtime::get().heap.describe(p);
  if (where.empty()) return true;
  Runtime::get().raise(cudaErrorInvalidValue, std::string(what) + " should be host memory, but is " + where);
  return false;
}

cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  Runtime& r = Runtime::get();
  if (cudaError_t e = r.check_stream(stream)) return e;
  if (bytes == 0) return cudaSuccess;
  bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  std::vector<Allocation*> touched;
  for (auto [p, device, what] : {std::tuple<const void*, bool, const char*>{to, to_device, "the target of a copy"},
                                 {from, from_device, "the source of a copy"}}) {
    if (!device && !on_host(p, what)) return cudaErrorInvalidValue;
    if (!device) continue;
    touched.push_back(range(p, bytes, what));
    if (!touched.back()) return cudaErrorInvalidValue;
  }
  r.enqueue(stream, [=] {
    Opened opened(touched);
    std::memmove(to, from, bytes);
    return Problem{};
  });
  return cudaSuccess;
}

cudaError_t fill(void* to, int byte, size_t bytes, cudaStream_t stream) {
  Runtime& r = Runtime::get();
  if (cudaError_t e = r.check_stream(stream)) return e;
  if (bytes == 0) return cudaSuccess;
  Allocation* a = range(to, bytes, "the target of a memset");
  if (!a) return cudaErrorInvalidValue;
  r.enqueue(stream, [=] {
    Opened opened(std::span(&a, 1));
    std::memset(to, byte, bytes);
    return Problem{};
  });
  return cudaSuccess;
}

}  // namespace

// What every function of the API does first.
#define BCU_BEGIN                \
  Runtime& r = Runtime::get();   \
  std::lock_guard lock(r.mutex); \
  if (cudaError_t e = r.begin(__func__)) return e

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  Runtime& r = Runtime::get();
  std::lock_guard lock(r.mutex);
  if (cudaError_t e = r.begin(__func__, false)) return e;
  *count = r.device_count();
  return *count ? cudaSuccess : r.raise(cudaErrorNoDevice, "no CUDA-capable device is detected", false);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  BCU_BEGIN;
  if (device < 0 || device >= r.device_count()) return r.raise(cudaErrorInvalidDevice, "invalid device ordinal", false);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "baracuda emulator %d", device);
  properties->totalGlobalMem = kDeviceMemory;
  properties->major = 9, properties->minor = 0, properties->multiProcessorCount = 4;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 13000, cudaSuccess; }

cudaError_t cudaDeviceSynchronize() {
  BCU_BEGIN;
  return r.drain_all(current_device());
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  BCU_BEGIN;
  Allocation* a = bytes ? r.heap.allocate(current_device(), bytes) : nullptr;
  *memory = a ? a->data : nullptr;
  if (a || !bytes) return cudaSuccess;
  return r.raise(cudaErrorMemoryAllocation, "out of memory", false);
}

cudaError_t cudaFree(void* memory) {
  BCU_BEGIN;
  if (!memory) return cudaSuccess;
  Allocation* a = r.heap.find(memory);
  if (!a || a->data != memory)
    return r.raise(cudaErrorInvalidValue, "cudaFree of what is no allocation: " + r.heap.describe(memory));
  cudaError_t error = r.drain_all(a->device);  // as CUDA waits for work that may use the memory
  r.heap.release(memory);
  return error;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  BCU_BEGIN;
  if (cudaError_t e = copy(to, from, bytes, kind, nullptr)) return e;
  return r.drain(current_device(), nullptr);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  BCU_BEGIN;
  return copy(to, from, bytes, kind, stream);
}

cudaError_t cudaMemset(void* to, int byte, size_t bytes) {
  BCU_BEGIN;
  return fill(to, byte, bytes, nullptr);  // asynchronous for the host, as CUDA's is
}

cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t stream) {
  BCU_BEGIN;
  return fill(to, byte, bytes, stream);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  BCU_BEGIN;
  *stream = r.create_stream(current_device(), flags != cudaStreamNonBlocking);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  BCU_BEGIN;
  if (cudaError_t e = r.check_stream(stream)) return e;
  return r.drain(current_device(), stream);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  BCU_BEGIN;
  if (cudaError_t e = r.check_stream(stream)) return e;
  if (!stream) return r.raise(cudaErrorInvalidResourceHandle, "the default stream cannot be destroyed");
  cudaError_t error = r.drain(stream->device, stream);  // its work is finished first, as CUDA does
  r.destroy_stream(stream);
  return error;
}

}  // extern "C"
