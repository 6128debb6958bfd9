// The CUDA runtime's functions on the host: devices, memory and copies; fake_streams.cpp has the others. Nothing runs
// before somebody waits for it, so that a missing wait shows as memory that nobody has written.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "emulator/fakecuda/runtime.h"

using namespace baracuda::emulator;

namespace {

// The allocation that holds all of a range, or null with the error raised.
Allocation* range(const void* p, size_t bytes, const char* what, int device = current_device()) {
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
  if (a->device == device) return a;
  r.raise(cudaErrorInvalidValue,
          std::string(what) + " is on device " + std::to_string(a->device) + ", current is " + std::to_string(device));
  return nullptr;
}

bool on_host(const void* p, const char* what) {
  std::string where = Runtime::get().heap.describe(p);
  if (where.empty()) return true;
  Runtime::get().raise(cudaErrorInvalidValue, std::string(what) + " should be host memory, but is " + where);
  return false;
}

bool has_peers() { return !std::getenv("BARACUDA_FAKE_CUDA_NO_PEERS"); }

Problem freed(const char* what) {
  return {cudaErrorIllegalAddress, std::string(what) + " of a graph is memory that has been freed"};
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
  return r.enqueue(stream, [=] {
    if (Opened::gone(touched)) return freed("a copy");
    Opened opened(touched);
    std::memmove(to, from, bytes);
    return Problem{};
  });
}

cudaError_t fill(void* to, int byte, size_t bytes, cudaStream_t stream) {
  Runtime& r = Runtime::get();
  if (cudaError_t e = r.check_stream(stream)) return e;
  if (bytes == 0) return cudaSuccess;
  Allocation* a = range(to, bytes, "the target of a memset");
  if (!a) return cudaErrorInvalidValue;
  return r.enqueue(stream, [=] {
    if (a->freed) return freed("a memset");
    Opened opened(std::span(&a, 1));
    std::memset(to, byte, bytes);
    return Problem{};
  });
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  Runtime& r = Runtime::get();
  std::lock_guard lock(r.mutex);
  if (cudaError_t e = r.begin(__func__, false)) return e;
  *count = r.device_count();
  return *count ? cudaSuccess : r.raise(cudaErrorNoDevice, "no CUDA-capable device is detected", false);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  BCU_FAKE_BEGIN;
  if (device < 0 || device >= r.device_count()) return r.raise(cudaErrorInvalidDevice, "invalid device ordinal", false);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "baracuda emulator %d", device);
  properties->totalGlobalMem = kDeviceMemory;
  properties->major = 9, properties->minor = 0, properties->multiProcessorCount = 4;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  BCU_FAKE_BEGIN;
  return *version = 13000, cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  BCU_FAKE_BEGIN;
  return *version = 13000, cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  BCU_FAKE_BEGIN;
  if (cudaError_t e = r.raise(r.queue.refuse_whole_device(__func__, current_device()), false)) return e;
  return r.told(r.queue.drain_device(current_device()));
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  BCU_FAKE_BEGIN;
  Allocation* a = bytes ? r.heap.allocate(current_device(), bytes) : nullptr;
  *memory = a ? a->data : nullptr;
  if (a || !bytes) return cudaSuccess;
  return r.raise(cudaErrorMemoryAllocation, "out of memory", false);
}

cudaError_t cudaFree(void* memory) {
  BCU_FAKE_END;
  if (!memory) return cudaSuccess;
  Allocation* a = r.heap.find(memory);
  if (!a || a->data != memory)
    return r.raise(cudaErrorInvalidValue, "cudaFree of what is no allocation: " + r.heap.describe(memory));
  // As CUDA waits for work that may use the memory.
  cudaError_t error = r.told_by_release(a->device, r.queue.drain_device(a->device));
  r.heap.release(memory);
  return told ? told : error;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  BCU_FAKE_BEGIN;
  if (cudaError_t e = copy(to, from, bytes, kind, nullptr)) return e;
  return r.told(r.queue.drain(current_device(), nullptr));
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  BCU_FAKE_BEGIN;
  return copy(to, from, bytes, kind, stream);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t stream) {
  BCU_FAKE_BEGIN;
  if (cudaError_t e = r.check_stream(stream)) return e;
  if (bytes == 0) return cudaSuccess;
  Allocation* a = range(to, bytes, "the target of a copy", to_device);
  Allocation* b = a ? range(from, bytes, "the source of a copy", from_device) : nullptr;
  if (!b) return cudaErrorInvalidValue;
  return r.enqueue(stream, [=] {
    Allocation* touched[] = {a, b};
    if (Opened::gone(touched)) return freed("a copy");
    Opened opened(touched);
    std::memmove(to, from, bytes);
    return Problem{};
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  BCU_FAKE_BEGIN;
  for (int d : {device, peer})
    if (d < 0 || d >= r.device_count()) return r.raise(cudaErrorInvalidDevice, "invalid device ordinal", false);
  *can = device != peer && has_peers();
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  BCU_FAKE_BEGIN;
  if (flags || peer < 0 || peer >= r.device_count() || peer == current_device() || !has_peers())
    return r.raise(cudaErrorInvalidDevice, "the device has no access to this peer");
  std::pair pair{current_device(), peer};
  if (std::find(r.peers.begin(), r.peers.end(), pair) != r.peers.end())
    return r.raise(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled", false);
  r.peers.push_back(pair);
  return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int byte, size_t bytes) {
  BCU_FAKE_BEGIN;
  return fill(to, byte, bytes, nullptr);  // asynchronous for the host, as CUDA's is
}

cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t stream) {
  BCU_FAKE_BEGIN;
  return fill(to, byte, bytes, stream);
}

}  // extern "C"
