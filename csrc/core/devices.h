// The devices of backends that have memory of their own, by backend and ordinal.
#pragma once
#include <string>

#include "core/api.h"
#include "core/device.h"
#include "core/registry.h"

namespace baracuda {

// How many devices a backend has here; the cpu is one.
BCU_API int32_t device_count(Backend backend);
// What a device is, asked of its module once; null where there is no such device.
BCU_API const DeviceInfo* device_info(Backend backend, int32_t device);
// "cpu", "cuda:1", "metal".
BCU_API std::string device_name(Backend backend, int32_t device);

}  // namespace baracuda
