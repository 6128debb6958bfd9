#include "emulator/fakecuda/runtime.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "emulator/emulator.h"
#include "emulator/faults.h"

namespace baracuda::emulator {
namespace {

struct LastError {
  cudaError_t error = cudaSuccess, described = cudaSuccess;
  std::string text;
  int device = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
};
LastError& last() {
  thread_local LastError state;
  return state;
}

// What CUDA calls potentially unsafe while a stream is captured.
constexpr std::string_view kUnsafe[] = {"cudaMalloc",
                                        "cudaFree",
                                        "cudaMemcpy",
                                        "cudaMemset",
                                        "cudaDeviceSynchronize",
                                        "cudaStreamQuery",
                                        "cudaStreamSynchronize",
                                        "cudaEventQuery",
                                        "cudaEventSynchronize",
                                        "cudaDeviceEnablePeerAccess"};

}  // namespace

int current_device() { return last().device; }
cudaStreamCaptureMode& capture_mode() { return last().mode; }

Runtime& Runtime::get() {
  static Runtime* all = new Runtime;  // never destroyed: memory may be released while the process ends
  return *all;
}

Runtime::Runtime() {
  const char* n = std::getenv("BARACUDA_FAKE_CUDA_DEVICES");
  failed_.resize(n ? size_t(std::clamp(std::atoi(n), 0, 8)) : 2);
  untold_.resize(failed_.size());
  fail_calls(std::getenv("BARACUDA_FAKE_CUDA_FAIL"));
  sticky = std::getenv("BARACUDA_FAKE_CUDA_STICKY") != nullptr;
}

void Runtime::fail_calls(const char* wanted) {
  injected_.clear();
  std::string_view rest = wanted ? wanted : "";
  while (!rest.empty()) {
    std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    size_t colon = one.find(':');
    int64_t k = colon == one.npos ? 1 : std::atoll(std::string(one.substr(colon + 1)).c_str());
    injected_.push_back({std::string(one.substr(0, colon)), k});
  }
}

int64_t Runtime::calls(const char* api) const {
  for (const auto& [name, n] : calls_)
    if (name == api) return n;
  return 0;
}

cudaError_t Runtime::begin(const char* api, bool touches_device) {
  auto counted = std::find_if(calls_.begin(), calls_.end(), [&](const auto& c) { return c.first == api; });
  if (counted == calls_.end())
    calls_.push_back({api, 1});
  else
    ++counted->second;
  asked_for = false;
  for (Injected& i : injected_) {
    if (i.api != api || --i.left != 0) continue;
    asked_for = true;
    // What a caller could not wait for may not run later: the host memory it names may be gone then.
    if (i.api.ends_with("Synchronize")) queue.drop_device(last().device);
    return raise(i.api == "cudaMalloc" ? cudaErrorMemoryAllocation : cudaErrorLaunchFailure,
                 "a failure that a test asked for", false);
  }
  if (!touches_device) return cudaSuccess;
  if (failed_.empty()) return raise(cudaErrorNoDevice, "no CUDA-capable device is detected", false);
  if (!owner_) {
    owner_ = getpid();
    watch_faults(heap);
  }
  if (owner_ != getpid()) return raise(cudaErrorInitializationError, "a forked process uses its parent's devices");
  if (Problem& failed = failed_[size_t(current_device())]; failed.error) return raise(failed, false);
  need_signal_stack();
  if (std::find(std::begin(kUnsafe), std::end(kUnsafe), api) == std::end(kUnsafe)) return cudaSuccess;
  return raise(queue.refuse_unsafe(api, last().mode), false);
}

cudaError_t Runtime::raise(cudaError_t error, std::string text, bool print) {
  if (error == cudaSuccess) return error;
  if (print) std::fprintf(stderr, "fake CUDA: %s\n", text.c_str());
  last().error = last().described = error;
  last().text = std::move(text);
  return error;
}

cudaError_t Runtime::check_stream(cudaStream_t& stream) {
  // CUDA's names for the default streams of a context and of a thread.
  if (stream == reinterpret_cast<cudaStream_t>(1) || stream == reinterpret_cast<cudaStream_t>(2)) stream = nullptr;
  if (!stream) return cudaSuccess;
  if (!queue.is_stream(stream)) return raise(cudaErrorInvalidResourceHandle, "there is no such stream (destroyed?)");
  if (stream->device != current_device())
    return raise(cudaErrorInvalidResourceHandle, "the stream belongs to device " + std::to_string(stream->device) +
                                                     ", current is " + std::to_string(current_device()));
  return cudaSuccess;
}

cudaError_t Runtime::check_event(cudaEvent_t event) {
  if (std::find(events.begin(), events.end(), event) != events.end()) return cudaSuccess;
  return raise(cudaErrorInvalidResourceHandle, "there is no such event (destroyed?)");
}

cudaError_t Runtime::enqueue(cudaStream_t stream, Work work) {
  uint64_t none = 0;
  return enqueue_behind(none, stream, std::move(work));
}

cudaError_t Runtime::enqueue_behind(uint64_t& last, cudaStream_t stream, Work work) {
  Problem problem;
  last = queue.add(current_device(), stream, std::move(work), problem, {last});
  return raise(std::move(problem));
}

cudaError_t Runtime::told(Problem problem) {
  Problem& before = untold_[size_t(current_device())];
  if (!problem.error) return raise(std::exchange(before, {}), false);
  before = {};
  if (sticky) failed_[size_t(current_device())] = problem;
  return raise(std::move(problem));
}

cudaError_t Runtime::told_by_release(int device, Problem problem) {
  if (!problem.error) return cudaSuccess;
  (sticky ? failed_ : untold_)[size_t(device)] = problem;
  return raise(std::move(problem));
}

}  // namespace baracuda::emulator

using baracuda::emulator::last;
using baracuda::emulator::Runtime;

extern "C" {

cudaError_t cudaGetDevice(int* device) {
  std::lock_guard lock(Runtime::get().mutex);
  if (cudaError_t e = Runtime::get().begin("cudaGetDevice", false)) return e;
  *device = last().device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  Runtime& r = Runtime::get();
  std::lock_guard lock(r.mutex);
  if (cudaError_t e = r.begin("cudaSetDevice", false)) return e;
  if (device < 0 || device >= r.device_count()) return r.raise(cudaErrorInvalidDevice, "invalid device ordinal", false);
  last().device = device;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return std::exchange(last().error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last().error; }

const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaSuccess) return "no error";
  if (error == last().described) return last().text.c_str();
  return "an error that was not raised on this thread";
}

}  // extern "C"
