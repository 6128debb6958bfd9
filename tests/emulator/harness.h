// What the tests of the emulator share: device memory and a Launch made by hand.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/device.h"
#include "simt/launch.h"

extern "C" const baracuda::DeviceModule* baracuda_cuda_module();

namespace baracuda::probe {

// Device memory of `floats` floats, with its view in a launch.
class Buffer {
 public:
  explicit Buffer(int64_t floats, int32_t device = 0);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  float* data() const { return data_; }
  TensorView view() const;
  void write(std::span<const float> values);
  std::vector<float> read() const;

 private:
  float* data_ = nullptr;
  int64_t floats_;
  int32_t device_;
};

// A launch of `tensors` on a device. The views must outlive it.
class Call {
 public:
  explicit Call(std::vector<TensorView> tensors, int32_t device = 0, void* stream = nullptr);
  const Launch& launch() const { return launch_; }

 private:
  std::vector<TensorView> tensors_;
  std::vector<int32_t> first_;
  Launch launch_;
};

// Ends the process with the module's message where a call did not succeed.
void must(Status status);
std::string last_error();

// One case of the fake runtime; false if there is none of that name.
bool run_runtime_case(const std::string& name);
void list_runtime_cases();

}  // namespace baracuda::probe
