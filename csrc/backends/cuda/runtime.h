// What the cuda module's own files share besides device.h, which every kernel's launcher reads.
#pragma once
#include "backends/cuda/device.h"
#include "core/device.h"

// A call of the CUDA runtime, checked; errors name it. BCU_CUDA("freeing memory", cudaFree, memory)
#define BCU_CUDA(doing, function, ...) ::baracuda::cuda::check(function(__VA_ARGS__), doing ": " #function)

namespace baracuda::cuda {

extern const DeviceQueues kQueues;

// Makes what launches on the device need besides their arguments, where it is not there yet.
Status prepare(int32_t device);

// Lets the calling thread do what does not disturb a capture, but could: CUDA breaks the capture otherwise. For what
// the garbage collector destroys, at any time.
class CaptureTolerant {
 public:
  CaptureTolerant() { exchange(); }
  ~CaptureTolerant() {
    if (changed_) exchange();
  }
  CaptureTolerant(const CaptureTolerant&) = delete;
  CaptureTolerant& operator=(const CaptureTolerant&) = delete;

 private:
  void exchange() {
    changed_ = cudaThreadExchangeStreamCaptureMode(&mode_) == cudaSuccess;
    if (!changed_) cudaGetLastError();  // the next launch would be blamed for it
  }

  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  bool changed_ = false;
};

}  // namespace baracuda::cuda
