// Kernel launches on the fake runtime, and the controls that tests reach through the emulated module.
#include <cstdio>
#include <cstring>
#include <memory>

#include "backends/cuda/device.h"
#include "core/api.h"
#include "core/launch.h"
#include "emulator/emulator.h"
#include "emulator/fakecuda/runtime.h"
#include "simt/launch.h"

namespace baracuda::emulator {
namespace {

// A launch that waits for its turn, with the memory it may touch: the allocations of the call's tensors and workspace
// and those that its parameters point into.
class Pending {
 public:
  Pending(const Kernel& kernel, Blocks grid, uint32_t threads, const void* params)
      : kernel_(kernel),
        grid_(grid),
        threads_(threads),
        params_(static_cast<const char*>(params), static_cast<const char*>(params) + kernel.param_bytes) {}

  Problem bind(const Launch& launch) {
    int tensors = launch.n_params ? launch.first[launch.n_params] : 0;
    for (int i = 0; i < tensors; ++i) {
      const TensorView& t = launch.tensors[i];
      if (!t.present() || t.device == Backend::Cpu || t.numel() == 0) continue;
      if (Problem p = bind(t.data, "tensor " + std::to_string(i)); p.error) return p;
      if (!Runtime::get().heap.find(t.data))
        return {cudaErrorIllegalAddress, name_of(kernel_) + ": tensor " + std::to_string(i) + " is not device memory"};
    }
    if (Problem p = bind(launch.workspace, "the workspace"); p.error) return p;
    for (size_t at = 0; at + sizeof(void*) <= params_.size(); at += sizeof(void*)) {
      void* word = nullptr;
      std::memcpy(&word, params_.data() + at, sizeof word);
      if (Problem p = bind(word, "the memory at byte " + std::to_string(at) + " of the parameters"); p.error) return p;
    }
    return {};
  }

  Problem run() {
    if (Opened::gone(allocations_))
      return {cudaErrorIllegalAddress, name_of(kernel_) + ": a graph's launch meets memory that has been freed"};
    Opened opened(allocations_);
    std::string report = emulator::run(kernel_, grid_, threads_, params_.data(), bound_);
    return report.empty() ? Problem{} : Problem{cudaErrorLaunchFailure, std::move(report)};
  }

 private:
  Problem bind(const void* p, std::string name) {
    Allocation* a = p ? Runtime::get().heap.find(p) : nullptr;
    if (!a) return {};
    if (a->bound == number_) return {};
    a->bound = number_;
    if (a->device != current_device())
      return {cudaErrorIllegalAddress, name_of(kernel_) + ": " + name + " is on device " + std::to_string(a->device) +
                                           ", the launch on " + std::to_string(current_device())};
    allocations_.push_back(a);
    bound_.push_back({&a->region, std::move(name)});
    return {};
  }

  static inline uint64_t count_ = 0;
  uint64_t number_ = ++count_;
  const Kernel& kernel_;
  Blocks grid_;
  uint32_t threads_;
  std::vector<char> params_;
  std::vector<Allocation*> allocations_;
  std::vector<Bound> bound_;
};

cudaError_t launch_kernel(const Launch& launch, const Kernel& kernel, const int64_t (&grid)[3], int threads,
                          const void* params) {
  Runtime& r = Runtime::get();
  std::lock_guard lock(r.mutex);
  if (cudaError_t e = r.begin("cudaLaunchKernel")) return e;
  auto stream = static_cast<cudaStream_t>(launch.stream);
  if (cudaError_t e = r.check_stream(stream)) return e;
  bool fits = grid[0] > 0 && grid[0] <= simt::kMaxGridX;
  for (int64_t n : {grid[1], grid[2]}) fits = fits && n > 0 && n <= simt::kMaxGridYZ;
  if (!fits || threads <= 0 || threads % 32 != 0 || uint32_t(threads) > kernel.most_threads) {
    char text[120];
    std::snprintf(text, sizeof text, ": %lld x %lld x %lld blocks of %d threads (at most %u, in warps of 32)",
                  static_cast<long long>(grid[0]), static_cast<long long>(grid[1]), static_cast<long long>(grid[2]),
                  threads, kernel.most_threads);
    return r.raise(cudaErrorInvalidConfiguration, name_of(kernel) + text);
  }
  auto pending = std::make_shared<Pending>(kernel, Blocks{uint32_t(grid[0]), uint32_t(grid[1]), uint32_t(grid[2])},
                                           uint32_t(threads), params);
  if (Problem p = pending->bind(launch); p.error) return r.raise(p.error, std::move(p.text));
  return r.enqueue(stream, [pending] { return pending->run(); });
}

}  // namespace

Status enqueue(const Launch& launch, const Kernel& kernel, int64_t x, int64_t y, int64_t z, int threads,
               const void* params) {
  if (x == 0 || y == 0 || z == 0) return Status::Ok;
  cuda::DeviceGuard guard(launch.device);
  if (guard.status() != Status::Ok) return guard.status();
  launch_kernel(launch, kernel, {x, y, z}, threads, params);
  // As submit_cuda.h: what an earlier call left untaken is told here, too.
  return cuda::check(cudaPeekAtLastError(), "kernel launch");
}

}  // namespace baracuda::emulator

using baracuda::emulator::Runtime;

// Kernels that were loaded: what a launch may touch is what its parameters point into.
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t, cudaStream_t stream) {
  baracuda::Launch launch;
  launch.stream = stream;
  return baracuda::emulator::launch_kernel(launch, *static_cast<const baracuda::emulator::Kernel*>(kernel),
                                           {grid.x, grid.y, grid.z}, static_cast<int>(block.x), arguments[0]);
}

// Controls for tests, by ctypes or from C++.
extern "C" {

BCU_API void bcu_fake_cuda_fail(const char* wanted) {
  std::lock_guard lock(Runtime::get().mutex);
  Runtime::get().fail_calls(wanted);
}

BCU_API int64_t bcu_fake_cuda_calls(const char* api) {
  std::lock_guard lock(Runtime::get().mutex);
  return Runtime::get().calls(api);
}

// Allocations, their bytes, streams, events, graphs of both kinds, and operations that nobody has waited for.
BCU_API void bcu_fake_cuda_live(int64_t out[6]) {
  Runtime& r = Runtime::get();
  std::lock_guard lock(r.mutex);
  out[0] = r.heap.live(), out[1] = r.heap.live_bytes();
  out[2] = int64_t(r.queue.live_streams()), out[3] = int64_t(r.events.size());
  out[4] = int64_t(r.graphs.size() + r.executables.size()), out[5] = int64_t(r.queue.size());
}

// Gives the devices more memory than there is; 0 is what they have without it.
BCU_API void bcu_emulator_memory(int64_t bytes) {
  Runtime& r = Runtime::get();
  std::lock_guard lock(r.mutex);
  r.heap.set_limit(bytes ? size_t(bytes) : baracuda::emulator::kDeviceMemory);
}

// A stream of a device, for tests that pass their own; null when it cannot be made.
BCU_API void* bcu_fake_cuda_stream(int32_t device, int32_t non_blocking) {
  Runtime& r = Runtime::get();
  std::lock_guard lock(r.mutex);
  return device >= 0 && device < r.device_count() ? r.queue.create_stream(device, !non_blocking) : nullptr;
}

BCU_API int32_t bcu_fake_cuda_destroy_stream(void* stream) {
  baracuda::cuda::DeviceGuard guard(static_cast<cudaStream_t>(stream)->device);
  return cudaStreamDestroy(static_cast<cudaStream_t>(stream));
}

// The device that the calling thread uses, which every call of the module leaves as it was.
BCU_API int32_t bcu_fake_cuda_current_device(void) { return baracuda::emulator::current_device(); }

BCU_API int32_t bcu_fake_cuda_set_device(int32_t device) { return cudaSetDevice(device); }

// A capture that another library began: 0 to begin, 1 to end and throw the graph away. CUDA's error code.
BCU_API int32_t bcu_fake_cuda_capture(void* stream, int32_t mode, int32_t end) {
  auto s = static_cast<cudaStream_t>(stream);
  baracuda::cuda::DeviceGuard guard(s->device);
  if (!end) return cudaStreamBeginCapture(s, static_cast<cudaStreamCaptureMode>(mode));
  cudaGraph_t graph = nullptr;
  cudaError_t error = cudaStreamEndCapture(s, &graph);
  if (graph) cudaGraphDestroy(graph);
  return error;
}

}  // extern "C"
