#include "core/libraries.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <iterator>
#include <mutex>

#include "backends/modules.h"

namespace baracuda {
namespace {

struct Known {
  const char* name;
  const char* title;
  const char* variable;
  const char* file;      // the version whose functions we declare
  const char* in_wheel;  // below a folder that wheels are unpacked into
  const char* package;
  const char* version;  // the function that tells it, and proves that this is the library
};
constexpr Known kKnown[] = {
    {"cublaslt", "cuBLASLt", "BARACUDA_CUBLASLT_LIBRARY", "libcublasLt.so.13", "nvidia/cu13/lib/libcublasLt.so.13",
     "nvidia-cublas", "cublasLtGetVersion"},
    {"cudnn", "cuDNN", "BARACUDA_CUDNN_LIBRARY", "libcudnn.so.9", "nvidia/cudnn/lib/libcudnn.so.9", "nvidia-cudnn-cu13",
     "cudnnGetVersion"},
    {"nvrtc", "NVRTC", "BARACUDA_NVRTC_LIBRARY", "libnvrtc.so.13", "nvidia/cu13/lib/libnvrtc.so.13",
     "nvidia-cuda-nvrtc", "nvrtcVersion"},
};
static_assert(std::size(kKnown) == size_t(Library::Count));

struct Libraries {
  std::mutex mutex;
  std::vector<std::string> folders;
  std::once_flag looked[std::size(kKnown)];
  FoundLibrary found[std::size(kKnown)];
};
Libraries& libraries() {
  static Libraries* all = new Libraries;  // outlives every other object: kernels may run while the process ends
  return *all;
}

std::string version_of(Library which, void* function) {
  if (which == Library::Nvrtc) {
    int major = 0, minor = 0;
    const bool told = reinterpret_cast<int (*)(int*, int*)>(function)(&major, &minor) == 0;
    return told ? std::to_string(major) + "." + std::to_string(minor) : "";
  }
  const size_t v = reinterpret_cast<size_t (*)()>(function)();
  return std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." + std::to_string(v % 100);
}

// True when `file` is the library; else why not is added to `reason`, unless it is only not there.
bool adopt(Library which, const char* file, int flags, const char* from, FoundLibrary& out) {
  const Known& known = kKnown[size_t(which)];
  void* handle = dlopen(file, RTLD_NOW | RTLD_LOCAL | flags);
  const char* why = handle ? nullptr : dlerror();
  if (!handle) {
    if (!(flags & RTLD_NOLOAD)) out.reason += std::string(out.reason.empty() ? "" : "; ") + (why ? why : file);
    return false;
  }
  void* function = dlsym(handle, known.version);
  if (!function) {
    out.reason += std::string(out.reason.empty() ? "" : "; ") + file + " has no function " + known.version;
    dlclose(handle);
    return false;
  }
  Dl_info info{};
  const bool named = dladdr(function, &info) != 0 && info.dli_fname;
  out.handle = handle, out.file = named ? info.dli_fname : file, out.from = from;
  out.version = version_of(which, function);
  out.reason.clear();
  return true;
}

void look(Library which, const std::vector<std::string>& folders, FoundLibrary& out) {
  const Known& known = kKnown[size_t(which)];
  const char* chosen = std::getenv(known.variable);
  if (chosen && *chosen) {
    if (!adopt(which, chosen, 0, known.variable, out)) out.reason = std::string(known.variable) + ": " + out.reason;
    return;
  }
  if (adopt(which, known.file, RTLD_NOLOAD, "the process", out)) return;
  for (const std::string& folder : folders) {
    const std::string file = folder + "/" + known.in_wheel;
    if (access(file.c_str(), R_OK) == 0 && adopt(which, file.c_str(), 0, "a wheel", out)) return;
  }
  if (adopt(which, known.file, 0, "the system", out)) return;
  out.reason =
      std::string(known.title) + " cannot be opened: " + out.reason + "; pip install " + known.package + " brings it";
}

}  // namespace

const char* library_name(Library which) { return kKnown[size_t(which)].name; }

const FoundLibrary& library(Library which) {
  Libraries& all = libraries();
  const size_t i = size_t(which);
  std::call_once(all.looked[i], [&] { look(which, wheel_folders(), all.found[i]); });
  return all.found[i];
}

void* library_symbol(Library which, const char* symbol) {
  void* handle = library(which).handle;
  return handle ? dlsym(handle, symbol) : nullptr;
}

void set_wheel_folders(std::vector<std::string> folders) {
  Libraries& all = libraries();
  std::lock_guard lock(all.mutex);
  all.folders = std::move(folders);
}

std::vector<std::string> wheel_folders() {
  Libraries& all = libraries();
  std::lock_guard lock(all.mutex);
  return all.folders.empty() ? std::vector{own_directory() + "/../.."} : all.folders;
}

}  // namespace baracuda
