// What the fake runtime shares between its API, launches and the controls that tests use.
#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "emulator/fakecuda/cuda_runtime_api.h"
#include "emulator/fakecuda/queue.h"
#include "emulator/heap.h"

namespace baracuda::emulator {

class Runtime {
 public:
  std::recursive_mutex mutex;
  Heap heap;
  Queue queue;

  static Runtime& get();
  int device_count() const { return int(failed_.size()); }
  // Every API function begins here: counts the call, and fails it where a test asked for that.
  cudaError_t begin(const char* api, bool touches_device = true);
  // Keeps an error as the calling thread's last one. Misuse is printed, too: a caller may drop it.
  cudaError_t raise(cudaError_t error, std::string text, bool print = true);

  cudaError_t raise(Problem problem, bool print = true) { return raise(problem.error, std::move(problem.text), print); }
  // As raise, of what running an operation gave: a kernel's error may stay with its device.
  cudaError_t told(Problem problem);
  // The same for what frees or destroys, whose errors callers drop: the next call that waits tells it again, as on a
  // card all do.
  cudaError_t told_by_release(int device, Problem problem);

  cudaError_t check_stream(cudaStream_t& stream);
  cudaError_t check_event(cudaEvent_t event);
  // Puts work on a stream of the current device.
  cudaError_t enqueue(cudaStream_t stream, Work work);
  // The same behind an operation of any stream; `last` becomes the work.
  cudaError_t enqueue_behind(uint64_t& last, cudaStream_t stream, Work work);

  std::vector<cudaEvent_t> events;
  std::vector<cudaGraph_t> graphs;
  std::vector<cudaGraphExec_t> executables;
  std::vector<std::pair<int, int>> peers;  // (device, peer) with access

  // "cudaMalloc:2,cudaMemcpyAsync:1": the second and the first call from now on fail.
  void fail_calls(const char* wanted);
  int64_t calls(const char* api) const;
  // As on a card: after a kernel that failed, every call on its device fails with that kernel's error. Off, tests can
  // go on after a failure.
  bool sticky = false;
  // Whether the last failure that begin() told was asked for by a test.
  bool asked_for = false;

 private:
  Runtime();
  struct Injected {
    std::string api;
    int64_t left;
  };
  std::vector<Problem> failed_, untold_;  // by device
  std::vector<Injected> injected_;
  std::vector<std::pair<std::string, int64_t>> calls_;
  int owner_ = 0;  // the process that used a device first; forked children may not
};

int current_device();
// What the calling thread may do while streams are captured.
cudaStreamCaptureMode& capture_mode();

}  // namespace baracuda::emulator

// What every function of the API does first.
#define BCU_FAKE_BEGIN           \
  Runtime& r = Runtime::get();   \
  std::lock_guard lock(r.mutex); \
  if (cudaError_t e = r.begin(__func__)) return e

// The same for functions that end something: they do, and then report a failure that a test asked for. CUDA's may tell
// of earlier work.
#define BCU_FAKE_END                    \
  Runtime& r = Runtime::get();          \
  std::lock_guard lock(r.mutex);        \
  cudaError_t told = r.begin(__func__); \
  if (told && !r.asked_for) return told
