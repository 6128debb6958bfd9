// The CUDA runtime's errors as statuses of ours.
#pragma once
#include <cuda_runtime_api.h>

#include "core/launch.h"

namespace baracuda {
enum class Library : int32_t;
}

namespace baracuda::cuda {

inline constexpr int kMostDevices = 64;

// Ok, or Launch with the error kept for last_error(). `doing` says what failed.
Status check(cudaError_t error, const char* doing);
const char* last_error();
// The same for a failure that is not the runtime's.
Status failed(const char* format, ...) __attribute__((format(printf, 1, 2)));

// A function of a library that is opened at run time, or null.
void* find_symbol(Library which, const char* symbol);

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

// 80, 90; 0 where there is no such device.
int architecture(int device);

}  // namespace baracuda::cuda
