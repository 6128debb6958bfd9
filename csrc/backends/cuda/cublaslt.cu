#include "backends/cuda/cublaslt.h"

#include <mutex>

#include "backends/cuda/device.h"
#include "core/libraries.h"

namespace baracuda::cuda::lt {
namespace {

struct Handles {
  std::mutex mutex;
  Handle of[kMostDevices] = {};
};
Handles& handles() {
  static Handles* all = new Handles;  // outlives every other object: kernels may run while the process ends
  return *all;
}

struct Found {
  Api api{};
  const char* missing = nullptr;
  Found() {
    auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(find_symbol(Library::CublasLt, name));
      if (!function && !missing) missing = name;
    };
#define X(member, name) find(api.member, name);
    BCU_CUBLASLT_FUNCTIONS(X)
#undef X
  }
};

}  // namespace

const Api* api() {
  static const Found found;
  if (!found.missing) return &found.api;
  failed("cuBLASLt: there is no function %s", found.missing);
  return nullptr;
}

Status check(int code, const char* function) {
  if (code == kSuccess) return Status::Ok;
  const Api* known = api();
  return failed("%s: %s (cuBLASLt status %d)", function, known ? known->status_name(code) : "", code);
}

Status handle(int32_t device, Handle* out) {
  const Api* found = api();
  if (!found) return Status::Launch;
  if (device < 0 || device >= kMostDevices) return failed("cuBLASLt: there is no device %d", device);
  Handles& all = handles();
  std::lock_guard lock(all.mutex);
  Handle& mine = all.of[device];
  if (!mine) {
    DeviceGuard guard(device);
    if (guard.status() != Status::Ok) return guard.status();
    const Status status = check(found->create(&mine), "cublasLtCreate");
    if (status != Status::Ok) return mine = nullptr, status;
  }
  *out = mine;
  return Status::Ok;
}

}  // namespace baracuda::cuda::lt
