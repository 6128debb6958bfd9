// What the fake runtime shares between its API, launches and the controls that tests use.
#pragma once
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "emulator/fakecuda/cuda_runtime_api.h"
#include "emulator/fakecuda/heap.h"

struct CUstream_st {
  int device;
  bool blocking;  // keeps its order with the default stream
};

namespace baracuda::emulator {

struct Problem {
  cudaError_t error = cudaSuccess;
  std::string text;  // what a person needs to know
};

// Work that waits for somebody to synchronise.
struct Operation {
  cudaStream_t stream;  // null: the default stream
  std::function<Problem()> work;
};

class Runtime {
 public:
  std::recursive_mutex mutex;
  Heap heap;

  static Runtime& get();
  int device_count() const { return int(devices_.size()); }
  // Every API function begins here: counts the call, and fails it where a test asked for that.
  cudaError_t begin(const char* api, bool touches_device = true);
  // Keeps an error as the calling thread's last one. Misuse is printed, too: a caller may drop it.
  cudaError_t raise(cudaError_t error, std::string text, bool print = true);

  cudaError_t check_stream(cudaStream_t& stream);
  void enqueue(cudaStream_t stream, std::function<Problem()> work);
  // Runs what a stream waits for, or everything of the device.
  cudaError_t drain(int device, cudaStream_t stream);
  cudaError_t drain_all(int device);
  size_t pending() const;

  cudaStream_t create_stream(int device, bool blocking);
  bool destroy_stream(cudaStream_t stream);
  size_t live_streams() const { return streams_.size(); }

  // "cudaMalloc:2,cudaMemcpyAsync:1": the second and the first call from now on fail.
  void fail_calls(const char* wanted);
  int64_t calls(const char* api) const;
  // As on a card: after a kernel that failed, every call on its device fails with that kernel's error. Off, tests can
  // go on after a failure.
  bool sticky = false;

 private:
  Runtime();
  cudaError_t drain_some(int device, const std::function<bool(const Operation&)>& wanted);

  struct Device {
    std::deque<Operation> queue;
    Problem failed;
  };
  struct Injected {
    std::string api;
    int64_t left;
  };
  std::vector<Device> devices_;
  std::vector<cudaStream_t> streams_;
  std::vector<Injected> injected_;
  std::vector<std::pair<std::string, int64_t>> calls_;
  int owner_ = 0;  // the process that used a device first; forked children may not
};

int current_device();

}  // namespace baracuda::emulator
