// Kernels from text by NVRTC, kept on disk, and their launches.
#include <map>
#include <mutex>
#include <string>

#include "backends/cuda/disk_cache.h"
#include "backends/cuda/nvrtc.h"
#include "backends/cuda/nvrtc_headers.h"
#include "backends/cuda/runtime.h"
#include "backends/kept.h"
#include "simt/compiled.h"

namespace baracuda::simt {

struct CompiledKernel {
  cudaKernel_t kernel = nullptr;
};

}  // namespace baracuda::simt

namespace baracuda::cuda {
namespace {

using nvrtc::Api;

struct Found {
  Api api{};
  bool whole = true;
  Found() {
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(find_symbol(Library::Nvrtc, name));
      whole = whole && function;
    };
#define X(member, name) find(api.member, name);
    BCU_NVRTC_FUNCTIONS(X)
#undef X
  }
};
const Api* api() {
  static const Found found;
  return found.whole ? &found.api : nullptr;
}

// What a text is compiled with: a product and a sum are rounded one after the other, as they are written.
constexpr const char* kOptions[] = {"--std=c++17", "--fmad=false", "--disable-warnings"};

class Compilation {
 public:
  explicit Compilation(const Api& api) : api_(api) {}
  ~Compilation() {
    if (program_) api_.destroy(&program_);
  }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  Status run(const std::string& text, const std::string& target, std::string* out) {
    constexpr int kHeaders = static_cast<int>(std::size(nvrtc::kHeaders));
    int code = api_.create(&program_, text.c_str(), "fused.cu", kHeaders, nvrtc::kHeaders, nvrtc::kHeaderNames);
    if (code != 0) return failed("nvrtcCreateProgram: %s", api_.error(code));
    const char* options[std::size(kOptions) + 1] = {target.c_str()};
    std::copy(std::begin(kOptions), std::end(kOptions), options + 1);
    code = api_.compile(program_, static_cast<int>(std::size(options)), options);
    if (code != 0) return failed("a kernel's text does not compile: %s: %.180s", api_.error(code), log().c_str());
    size_t bytes = 0;
    code = api_.cubin_size(program_, &bytes);
    if (code == 0) {
      out->resize(bytes);
      code = api_.cubin(program_, out->data());
    }
    return code == 0 ? Status::Ok : failed("nvrtcGetCUBIN: %s", api_.error(code));
  }

 private:
  std::string log() {
    size_t bytes = 0;
    if (api_.log_size(program_, &bytes) != 0 || bytes == 0) return "";
    std::string text(bytes, '\0');
    return api_.log(program_, text.data()) == 0 ? text : "";
  }

  const Api& api_;
  nvrtc::Program program_ = nullptr;
};

// The kernels of this process: a text's kernel for one architecture serves all devices that have it.
struct Kernels {
  std::mutex mutex;
  std::map<std::string, simt::CompiledKernel> of;
};
Kernels& kernels() {
  static Kernels* all = new Kernels;  // outlives every other object: kernels may run while the process ends
  return *all;
}

Status load(int32_t device, const std::string& binary, simt::CompiledKernel& out) {
  DeviceGuard guard(device);
  CaptureTolerant tolerant;  // a plan may be made while somebody captures a stream
  if (guard.status() != Status::Ok) return guard.status();
  cudaLibrary_t library = nullptr;
  Status status = BCU_CUDA("loading a kernel", cudaLibraryLoadData, &library, binary.data(), nullptr, nullptr, 0,
                           nullptr, nullptr, 0);
  if (status != Status::Ok) return status;
  status = BCU_CUDA("looking for a kernel", cudaLibraryGetKernel, &out.kernel, library, "fused");
  if (status != Status::Ok && cudaLibraryUnload(library) != cudaSuccess) cudaGetLastError();
  return status;
}

Status make(const Api& api, int32_t device, const std::string& text, const std::string& target, const std::string& key,
            simt::CompiledKernel& out) {
  const DiskCache disk(kept_folder());
  std::string binary;
  // What was kept may still be no kernel for this machine.
  if (disk.find(key, &binary) && load(device, binary, out) == Status::Ok) return Status::Ok;
  Status status = Compilation(api).run(text, target, &binary);
  if (status == Status::Ok) status = load(device, binary, out);
  if (status == Status::Ok) disk.keep(key, binary);
  return status;
}

}  // namespace
}  // namespace baracuda::cuda

namespace baracuda::simt {

Status compile(int32_t device, const std::string& text, const CompiledKernel** out, Reason* why) {
  const cuda::Api* api = cuda::api();
  if (!api) {
    *why = {"program", "NVRTC, which compiles fused kernels",
            "pip install nvidia-cuda-nvrtc; python -m baracuda info says where it is looked for"};
    return Status::Unsupported;
  }
  int major = 0, minor = 0;
  api->version(&major, &minor);
  const std::string target = "--gpu-architecture=sm_" + std::to_string(cuda::architecture(device));
  std::string key = "NVRTC " + std::to_string(major) + "." + std::to_string(minor) + " " + target;
  for (const char* option : cuda::kOptions) key += std::string(" ") + option;
  key += "\n" + text;
  cuda::Kernels& all = cuda::kernels();
  std::lock_guard lock(all.mutex);
  const auto [at, is_new] = all.of.try_emplace(key);
  if (is_new) {
    if (const Status status = cuda::make(*api, device, text, target, key, at->second); status != Status::Ok) {
      all.of.erase(at);
      return status;
    }
  }
  *out = &at->second;
  return Status::Ok;
}

Status submit_compiled(const Launch& launch, const CompiledKernel& kernel, Grid grid, int threads, const void* params,
                       size_t) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return Status::Ok;
  cuda::DeviceGuard guard(launch.device);
  if (guard.status() != Status::Ok) return guard.status();
  const dim3 blocks(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z));
  void* arguments[] = {const_cast<void*>(params)};
  const cudaError_t error =
      cudaLaunchKernel(reinterpret_cast<const void*>(kernel.kernel), blocks, dim3(static_cast<unsigned>(threads)),
                       arguments, 0, static_cast<cudaStream_t>(launch.stream));
  return cuda::check(error, "launching a compiled kernel: cudaLaunchKernel");
}

}  // namespace baracuda::simt
