// The CUDA runtime's errors as statuses of ours.
#pragma once
#include <cuda_runtime_api.h>

#include "core/launch.h"

namespace baracuda::cuda {

// Ok, or Launch with the error kept for last_error(). `doing` says what failed.
Status check(cudaError_t error, const char* doing);
const char* last_error();

// Makes `device` the calling thread's, and the thread's own device again at the end.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  Status status() const { return status_; }

 private:
  int before_ = -1;
  Status status_ = Status::Ok;
};

}  // namespace baracuda::cuda
