// Devices, memory and faults by the CUDA runtime.
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <mutex>

#include "backends/cpu/module.h"
#include "backends/cuda/runtime.h"
#include "simt/families.h"
#include "simt/launch.h"

namespace baracuda::cuda {
namespace {

thread_local char message[256];
constinit std::atomic<FindSymbol> finder = nullptr;

}  // namespace

Status check(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return Status::Ok;
  cudaGetLastError();  // a sticky error stays with the device, any other is taken off
  std::snprintf(message, sizeof message, "%s: %s (CUDA error %d)", doing, cudaGetErrorString(error), int(error));
  return Status::Launch;
}

const char* last_error() { return message; }

Status failed(const char* format, ...) {
  va_list values;
  va_start(values, format);
  std::vsnprintf(message, sizeof message, format, values);
  va_end(values);
  return Status::Launch;
}

void* find_symbol(Library which, const char* symbol) { return finder.load() ? finder.load()(which, symbol) : nullptr; }

int architecture(int device) {
  cudaDeviceProp p;
  return check(cudaGetDeviceProperties(&p, device), "device properties") == Status::Ok ? p.major * 10 + p.minor : 0;
}

DeviceGuard::DeviceGuard(int device) {
  int now = 0;
  status_ = BCU_CUDA("looking for the current device", cudaGetDevice, &now);
  if (status_ != Status::Ok || now == device) return;
  status_ = BCU_CUDA("changing the current device", cudaSetDevice, device);
  if (status_ == Status::Ok) before_ = now;
}

DeviceGuard::~DeviceGuard() {
  if (before_ >= 0) cudaSetDevice(before_);
}

namespace {

// A device's sticky word, or null with last_error(). Made when the device is first used, kept for the life of the
// process.
struct Faults {
  std::mutex mutex;
  simt::Fault* words[kMostDevices] = {};
};
Faults& faults() {
  static Faults* all = new Faults;  // outlives every other object: kernels may run while the process ends
  return *all;
}

simt::Fault* fault_word(int device) {
  if (device < 0 || device >= kMostDevices) return check(cudaErrorInvalidDevice, "the device's status word"), nullptr;
  Faults& all = faults();
  std::lock_guard lock(all.mutex);
  if (all.words[device]) return all.words[device];
  DeviceGuard guard(device);
  CaptureTolerant tolerant;  // a plan may be made while somebody captures a stream
  void* memory = nullptr;
  if (guard.status() != Status::Ok) return nullptr;
  constexpr size_t kBytes = sizeof(simt::Fault);
  if (BCU_CUDA("making the device's status word", cudaMalloc, &memory, kBytes) != Status::Ok) return nullptr;
  Status status = BCU_CUDA("making the device's status word", cudaMemset, memory, 0, kBytes);
  // Kernels in other streams do not wait for the default one, where the memset is.
  if (status == Status::Ok) status = BCU_CUDA("making the device's status word", cudaStreamSynchronize, nullptr);
  if (status != Status::Ok) return cudaFree(memory), nullptr;
  return all.words[device] = static_cast<simt::Fault*>(memory);
}

int32_t count() {
  int n = 0;
  cudaError_t error = cudaGetDeviceCount(&n);
  if (error == cudaSuccess && n > 0) return n;
  if (error == cudaSuccess) error = cudaErrorNoDevice;
  check(error, "looking for devices: cudaGetDeviceCount");
  int driver = 0;  // CUDA calls a driver that is not there too old
  if (error == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
    std::snprintf(message, sizeof message, "no NVIDIA driver is installed here");
  return 0;
}

Status describe(int32_t device, DeviceInfo* out) {
  cudaDeviceProp p;
  Status status = BCU_CUDA("asking what a device is", cudaGetDeviceProperties, &p, device);
  if (status != Status::Ok) return status;
  std::snprintf(out->name, sizeof out->name, "%.63s", p.name);
  out->arch = p.major * 10 + p.minor;
  out->units = p.multiProcessorCount;
  out->memory = static_cast<int64_t>(p.totalGlobalMem);
  int driver = 0, runtime = 0;
  status = BCU_CUDA("asking for versions", cudaDriverGetVersion, &driver);
  if (status == Status::Ok) status = BCU_CUDA("asking for versions", cudaRuntimeGetVersion, &runtime);
  out->driver = driver, out->runtime = runtime;
  return status;
}

}  // namespace

Status prepare(int32_t device) { return fault_word(device) ? Status::Ok : Status::Launch; }

namespace {

Status allocate(int32_t device, int64_t bytes, void** out) {
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  Status status = prepare(device);
  if (status != Status::Ok) return status;
  cudaError_t error = cudaMalloc(out, bytes ? bytes : 1);
  status = check(error, "allocating device memory: cudaMalloc");
  return error == cudaErrorMemoryAllocation ? Status::Workspace : status;
}

Status release(int32_t device, void* memory) {
  DeviceGuard guard(device);
  CaptureTolerant tolerant;
  return guard.status() != Status::Ok ? guard.status() : BCU_CUDA("freeing device memory", cudaFree, memory);
}

Status copy(int32_t device, void* to, const void* from, int64_t bytes, CopyKind kind, void* stream) {
  constexpr cudaMemcpyKind kKinds[] = {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice};
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  auto s = static_cast<cudaStream_t>(stream);
  Status status = BCU_CUDA("copying memory", cudaMemcpyAsync, to, from, bytes, kKinds[static_cast<int>(kind)], s);
  // The host's memory is the caller's: it may be gone when a later copy would read or write it.
  if (status != Status::Ok || kind == CopyKind::OnDevice) return status;
  return BCU_CUDA("waiting for a copy", cudaStreamSynchronize, s);
}

// Lets a device read another one's memory, where it can: a copy goes through the host otherwise.
Status reach_peer(int32_t device, int32_t peer) {
  static std::atomic<uint64_t> reached[kMostDevices];  // a bit for each peer that was looked at
  static_assert(kMostDevices <= 64);
  if (device >= kMostDevices || peer >= kMostDevices || reached[device] >> peer & 1) return Status::Ok;
  int can = 0;
  Status status = BCU_CUDA("asking for a peer", cudaDeviceCanAccessPeer, &can, device, peer);
  if (status == Status::Ok && can) {
    DeviceGuard guard(device);
    if (guard.status() != Status::Ok) return guard.status();
    cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
    // Another library may have done so; and a device has no more than eight peers.
    if (error == cudaErrorPeerAccessAlreadyEnabled || error == cudaErrorTooManyPeers)
      cudaGetLastError();
    else
      status = check(error, "reaching a peer: cudaDeviceEnablePeerAccess");
  }
  if (status == Status::Ok) reached[device] |= uint64_t{1} << peer;
  return status;
}

Status copy_between(int32_t to_device, void* to, int32_t from_device, const void* from, int64_t bytes, void* stream) {
  Status status = reach_peer(to_device, from_device);
  if (status != Status::Ok) return status;
  DeviceGuard guard(to_device);
  if (guard.status() != Status::Ok) return guard.status();
  auto s = static_cast<cudaStream_t>(stream);
  status = BCU_CUDA("copying between devices", cudaMemcpyPeerAsync, to, to_device, from, from_device, bytes, s);
  return status == Status::Ok ? BCU_CUDA("waiting for a copy", cudaStreamSynchronize, s) : status;
}

Status fill(int32_t device, void* to, int32_t byte, int64_t bytes, void* stream) {
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  return BCU_CUDA("filling memory", cudaMemsetAsync, to, byte, bytes, static_cast<cudaStream_t>(stream));
}

Status synchronize(int32_t device, void* stream) {
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  if (!stream) return BCU_CUDA("waiting for the device", cudaDeviceSynchronize);
  return BCU_CUDA("waiting for a stream", cudaStreamSynchronize, static_cast<cudaStream_t>(stream));
}

Status take_fault(int32_t device, void* stream, DeviceFault* out) {
  Status status = synchronize(device, stream);
  simt::Fault* word = fault_word(device);
  if (status != Status::Ok || !word) return status;
  simt::Fault found;
  DeviceGuard guard(device);
  auto s = static_cast<cudaStream_t>(stream);
  status =
      BCU_CUDA("reading the device's status", cudaMemcpyAsync, &found, word, sizeof found, cudaMemcpyDeviceToHost, s);
  if (status == Status::Ok) status = BCU_CUDA("reading the device's status", cudaStreamSynchronize, s);
  uint32_t raised = 0;
  std::memcpy(&raised, &found.raised, sizeof raised);
  if (status != Status::Ok || !raised) return status;
  *out = {static_cast<int32_t>(found.row),
          static_cast<int32_t>(found.row >> 32),
          {found.tensor, found.position, found.value, found.limit}};
  status = BCU_CUDA("clearing the device's status", cudaMemsetAsync, word, 0, sizeof found, s);
  return status == Status::Ok ? BCU_CUDA("clearing the device's status", cudaStreamSynchronize, s) : status;
}

void attach(FindSymbol find) { finder = find; }

}  // namespace
}  // namespace baracuda::cuda

namespace baracuda::simt {

Fault* fault_of(const Launch& launch) { return cuda::fault_word(launch.device); }

}  // namespace baracuda::simt

extern "C" BCU_API const baracuda::DeviceModule* baracuda_cuda_module() {
  using namespace baracuda::cuda;
  static constexpr baracuda::DeviceModule kModule = {.abi = baracuda::kModuleAbi,
                                                     .version = BCU_VERSION,
                                                     .name = "cuda",
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
                                                     .attach = &attach};
  return &kModule;
}
