#include "core/devices.h"

#include <vector>

namespace baracuda {
namespace {

std::vector<DeviceInfo> look_up(Backend backend) {
  std::vector<DeviceInfo> found;
  std::string reason;
  const DeviceModule* module = device_module(backend, reason);
  for (int32_t i = 0, n = module ? module->count() : 0; i < n; ++i) {
    DeviceInfo info;
    if (module->describe(i, &info) != Status::Ok) break;
    found.push_back(info);
  }
  return found;
}

const std::vector<DeviceInfo>& devices_of(Backend backend) {
  static const std::vector<DeviceInfo> none;
  if (backend == Backend::Cuda) {
    static const std::vector<DeviceInfo> cuda = look_up(backend);
    return cuda;
  }
  if (backend == Backend::Metal) {
    static const std::vector<DeviceInfo> metal = look_up(backend);
    return metal;
  }
  return none;
}

}  // namespace

int32_t device_count(Backend backend) {
  return backend == Backend::Cpu ? 1 : static_cast<int32_t>(devices_of(backend).size());
}

const DeviceInfo* device_info(Backend backend, int32_t device) {
  const std::vector<DeviceInfo>& found = devices_of(backend);
  return device >= 0 && device < static_cast<int32_t>(found.size()) ? &found[device] : nullptr;
}

std::string device_name(Backend backend, int32_t device) {
  return backend == Backend::Cuda ? "cuda:" + std::to_string(device) : name(backend);
}

}  // namespace baracuda
