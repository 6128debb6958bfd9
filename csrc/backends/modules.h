// Finding and opening the shared modules that lie beside libbaracuda.
#pragma once
#include <string>

#include "backends/device.h"
#include "core/registry.h"

namespace baracuda {

// The folder that libbaracuda was loaded from.
std::string own_directory();

// The address of `symbol` in a module, or null: what went wrong with a file that is there is added to `tried`.
void* open_module(const std::string& path, const char* symbol, std::string& tried);

struct DeviceBackend {
  BackendState state;
  const DeviceModule* module = nullptr;  // null where it is not built or cannot be opened
};
// libbaracuda_cuda.so or libbaracuda_metal.so, opened by the first question about it. BARACUDA_CUDA_MODULE and
// BARACUDA_METAL_MODULE name another file.
const DeviceBackend& device_backend(Backend backend);

}  // namespace baracuda
