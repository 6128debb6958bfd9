// Devices, memory and faults by the CUDA runtime.
#include "backends/cuda/device.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <mutex>

#include "backends/cpu/module.h"
#include "backends/device.h"
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
  status_ = check(cudaGetDevice(&now), "current device");
  if (status_ != Status::Ok || now == device) return;
  status_ = check(cudaSetDevice(device), "set device");
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
  void* memory = nullptr;
  if (guard.status() != Status::Ok) return nullptr;
  if (check(cudaMalloc(&memory, sizeof(simt::Fault)), "the device's status word") != Status::Ok) return nullptr;
  if (check(cudaMemset(memory, 0, sizeof(simt::Fault)), "the device's status word") != Status::Ok)
    return cudaFree(memory), nullptr;
  return all.words[device] = static_cast<simt::Fault*>(memory);
}

int32_t count() {
  int n = 0;
  cudaError_t error = cudaGetDeviceCount(&n);
  if (error == cudaSuccess && n > 0) return n;
  if (error == cudaSuccess) error = cudaErrorNoDevice;
  check(error, "looking for devices");
  int driver = 0;  // CUDA calls a driver that is not there too old
  if (error == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
    std::snprintf(message, sizeof message, "no NVIDIA driver is installed here");
  return 0;
}

Status describe(int32_t device, DeviceInfo* out) {
  cudaDeviceProp p;
  Status status = check(cudaGetDeviceProperties(&p, device), "device properties");
  if (status != Status::Ok) return status;
  std::snprintf(out->name, sizeof out->name, "%.63s", p.name);
  out->arch = p.major * 10 + p.minor;
  out->units = p.multiProcessorCount;
  out->memory = static_cast<int64_t>(p.totalGlobalMem);
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver), cudaRuntimeGetVersion(&runtime);
  out->driver = driver, out->runtime = runtime;
  return Status::Ok;
}

Status prepare(int32_t device) { return fault_word(device) ? Status::Ok : Status::Launch; }

Status allocate(int32_t device, int64_t bytes, void** out) {
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  Status status = prepare(device);
  if (status != Status::Ok) return status;
  cudaError_t error = cudaMalloc(out, bytes ? bytes : 1);
  status = check(error, "allocating device memory");
  return error == cudaErrorMemoryAllocation ? Status::Workspace : status;
}

Status release(int32_t device, void* memory) {
  DeviceGuard guard(device);
  return guard.status() != Status::Ok ? guard.status() : check(cudaFree(memory), "freeing device memory");
}

Status copy(int32_t device, void* to, const void* from, int64_t bytes, CopyKind kind, void* stream) {
  constexpr cudaMemcpyKind kKinds[] = {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice};
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  auto s = static_cast<cudaStream_t>(stream);
  Status status = check(cudaMemcpyAsync(to, from, bytes, kKinds[static_cast<int>(kind)], s), "copying memory");
  // The host's memory is the caller's: it may be gone when a later copy would read or write it.
  if (status != Status::Ok || kind == CopyKind::OnDevice) return status;
  return check(cudaStreamSynchronize(s), "waiting for a copy");
}

Status fill(int32_t device, void* to, int32_t byte, int64_t bytes, void* stream) {
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  return check(cudaMemsetAsync(to, byte, bytes, static_cast<cudaStream_t>(stream)), "filling memory");
}

Status synchronize(int32_t device, void* stream) {
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  if (!stream) return check(cudaDeviceSynchronize(), "waiting for the device");
  return check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "waiting for a stream");
}

Status take_fault(int32_t device, void* stream, DeviceFault* out) {
  Status status = synchronize(device, stream);
  simt::Fault* word = fault_word(device);
  if (status != Status::Ok || !word) return status;
  simt::Fault found;
  DeviceGuard guard(device);
  auto s = static_cast<cudaStream_t>(stream);
  status = check(cudaMemcpyAsync(&found, word, sizeof found, cudaMemcpyDeviceToHost, s), "reading the device's status");
  if (status == Status::Ok) status = check(cudaStreamSynchronize(s), "waiting for the device's status");
  uint32_t raised = 0;
  std::memcpy(&raised, &found.raised, sizeof raised);
  if (status != Status::Ok || !raised) return status;
  *out = {static_cast<int32_t>(found.row), {found.tensor, found.position, found.value, found.limit}};
  status = check(cudaMemsetAsync(word, 0, sizeof found, s), "clearing the device's status");
  return status == Status::Ok ? check(cudaStreamSynchronize(s), "clearing the device's status") : status;
}

Status create_stream(int32_t device, bool blocking, void** out) {
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  cudaStream_t stream = nullptr;
  Status status = check(cudaStreamCreateWithFlags(&stream, blocking ? cudaStreamDefault : cudaStreamNonBlocking),
                        "creating a stream");
  *out = stream;
  return status;
}

void attach(FindSymbol find) { finder = find; }

Status destroy_stream(int32_t device, void* stream) {
  DeviceGuard guard(device);
  if (guard.status() != Status::Ok) return guard.status();
  return check(cudaStreamDestroy(static_cast<cudaStream_t>(stream)), "destroying a stream");
}

}  // namespace
}  // namespace baracuda::cuda

#define BCU_FAMILY(name, slice)                 \
  namespace baracuda::name {                    \
  extern const FamilyKernels kSimtSlice##slice; \
  }
#include "simt_families.inc"
#undef BCU_FAMILY

namespace baracuda::simt {

Fault* fault_of(const Launch& launch) { return cuda::fault_word(launch.device); }

}  // namespace baracuda::simt

extern "C" BCU_API const baracuda::DeviceModule* baracuda_cuda_module() {
  using namespace baracuda::cuda;
#define BCU_FAMILY(name, slice) &baracuda::name::kSimtSlice##slice,
  static constexpr const baracuda::FamilyKernels* kFamilies[] = {
#include "simt_families.inc"
  };
#undef BCU_FAMILY
  static constexpr baracuda::DeviceModule kModule = {baracuda::kModuleAbi,
                                                     "cuda",
                                                     kFamilies,
                                                     int32_t(std::size(kFamilies)),
                                                     &count,
                                                     &describe,
                                                     &allocate,
                                                     &release,
                                                     &copy,
                                                     &fill,
                                                     &synchronize,
                                                     &take_fault,
                                                     &last_error,
                                                     &prepare,
                                                     &create_stream,
                                                     &destroy_stream,
                                                     &attach};
  return &kModule;
}
