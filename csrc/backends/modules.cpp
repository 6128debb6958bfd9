#include "backends/modules.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "backends/cpu/loader.h"
#include "core/device.h"
#include "core/libraries.h"

namespace baracuda {
namespace {

// Says of a module that opened which devices it finds.
void look_for_devices(LoadedBackend& backend) {
  const DeviceModule& module = *backend.module;
  if (module.count() <= 0) {
    backend.state.reason = module.last_error();
    return;
  }
  DeviceInfo info;
  if (module.describe(0, &info) != Status::Ok) {
    backend.state.reason = module.last_error();
    return;
  }
  backend.state.present = true;
  backend.state.arch = info.arch;
  backend.state.level = info.name;
}

std::string brought_by(std::string_view name) {
  return name == "cuda" ? ": build the wheel of the cuda backend from the same sources (python -m build --wheel "
                          "packaging/cuda13) and install it"
                        : "";
}

// Beside libbaracuda, or in a wheel of its own: baracuda-cuda13 has the folder baracuda_cuda13.
std::string device_module_file(const std::string& name) {
  const std::string file = "/libbaracuda_" + name + ".so", beside = own_directory() + file;
  if (access(beside.c_str(), R_OK) == 0) return beside;
  for (const std::string& folder : wheel_folders())
    if (std::string in_wheel = folder + "/baracuda_" + name + "13" + file; access(in_wheel.c_str(), R_OK) == 0)
      return in_wheel;
  return beside;
}

LoadedBackend open_device_backend(const char* name, const char* variable, const char* symbol) {
  LoadedBackend out;
  const char* named = std::getenv(variable);
  bool chosen = named && *named;
  std::string path = chosen ? named : device_module_file(name), tried;
  if (chosen && access(path.c_str(), R_OK) != 0) {
    out.state.reason = std::string(variable) + " names " + path + ", which cannot be read";
    return out;
  }
  auto entry = reinterpret_cast<DeviceModuleEntry>(open_module(path, symbol, tried));
  const DeviceModule* module = entry ? entry() : nullptr;
  if (module && (module->abi != kModuleAbi || std::strcmp(module->version, BCU_VERSION) != 0)) {
    tried = path + ": it was built for another version than " BCU_VERSION "; install the two of one version";
    module = nullptr;
  }
  if (!module) {
    out.state.built = !tried.empty();
    out.state.reason = tried.empty() ? "there is no module of the " + std::string(name) + " backend" + brought_by(name)
                                     : std::move(tried);
    return out;
  }
  out.module = module;
  out.families.emplace_back(module->families, static_cast<size_t>(module->n_families));
  out.state.built = true;
  if (module->attach) module->attach(&library_symbol);
  look_for_devices(out);
  return out;
}

}  // namespace

std::string own_directory() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<void*>(&own_directory), &info) || !info.dli_fname) return ".";
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

void* open_module(const std::string& path, const char* symbol, std::string& tried) {
  if (access(path.c_str(), R_OK) != 0) return nullptr;
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* address = handle ? dlsym(handle, symbol) : nullptr;
  if (address) return address;
  const char* why = dlerror();
  tried += path + ": " + (why ? why : "cannot be opened") + "; ";
  return nullptr;
}

// BARACUDA_CUDA_MODULE and BARACUDA_METAL_MODULE name other files.
const LoadedBackend& loaded_backend(Backend backend) {
  switch (backend) {
    case Backend::Cpu: {
      static const LoadedBackend cpu = open_cpu_backend();
      return cpu;
    }
    case Backend::Cuda: {
      static const LoadedBackend cuda = open_device_backend("cuda", "BARACUDA_CUDA_MODULE", "baracuda_cuda_module");
      return cuda;
    }
    case Backend::Metal: {
      static const LoadedBackend metal = open_device_backend("metal", "BARACUDA_METAL_MODULE", "baracuda_metal_module");
      return metal;
    }
    default: {
      static const LoadedBackend none = {};
      return none;
    }
  }
}

}  // namespace baracuda
