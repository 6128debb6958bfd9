#include "backends/cpu/blas.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <mutex>

namespace baracuda {
namespace {

constexpr size_t kPathBytes = 4096;
#if defined(__APPLE__)
constexpr const char* kFile = "libscipy_openblas.dylib";
#else
constexpr const char* kFile = "libscipy_openblas.so";
#endif

struct State {
  bool tried = false, usable = false;
  Blas blas;
  char text[2 * kPathBytes] = "OpenBLAS has not been asked for yet";
};

constinit std::mutex g_mutex;
constinit char g_path[kPathBytes] = {};
constinit State g_state;

template <class Fn>
bool find(void* handle, const char* symbol, Fn& fn) {
  fn = reinterpret_cast<Fn>(dlsym(handle, symbol));
  return fn != nullptr;
}

// Never closed again: kernels keep its functions.
bool adopt(State& s, const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    std::snprintf(s.text, sizeof s.text, "OpenBLAS cannot be opened: %s", why != nullptr ? why : path);
    return false;
  }
  void (*set_threads)(int) = nullptr;
  if (!find(handle, "scipy_cblas_sgemm", s.blas.sgemm) || !find(handle, "scipy_cblas_dgemm", s.blas.dgemm) ||
      !find(handle, "scipy_openblas_set_num_threads", set_threads)) {
    std::snprintf(s.text, sizeof s.text, "%s lacks the functions of the scipy-openblas32 package", path);
    return false;
  }
  set_threads(1);
  Dl_info info{};
  const bool named = dladdr(reinterpret_cast<void*>(s.blas.sgemm), &info) != 0 && info.dli_fname != nullptr;
  std::snprintf(s.text, sizeof s.text, "%s", named ? info.dli_fname : path);
  return true;
}

// The library as a neighbour of libbaracuda; false when that folder is unknown.
bool neighbour(char* path, size_t bytes) {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&blas), &info) == 0 || info.dli_fname == nullptr) return false;
  const char* slash = std::strrchr(info.dli_fname, '/');
  if (slash == nullptr) return false;
  const int folder = static_cast<int>(slash - info.dli_fname);
  return std::snprintf(path, bytes, "%.*s/%s", folder, info.dli_fname, kFile) < static_cast<int>(bytes);
}

const State& state() {
  const std::lock_guard lock(g_mutex);
  if (!g_state.tried) {
    g_state.tried = true;
    char beside[kPathBytes];
    g_state.usable = (g_path[0] != '\0' && adopt(g_state, g_path)) ||
                     (neighbour(beside, sizeof beside) && adopt(g_state, beside)) || adopt(g_state, kFile);
  }
  return g_state;
}

}  // namespace

const Blas* blas() noexcept {
  const State& s = state();
  return s.usable ? &s.blas : nullptr;
}

const char* blas_origin() noexcept { return state().text; }

void set_blas_path(const char* path) noexcept {
  const std::lock_guard lock(g_mutex);
  std::snprintf(g_path, sizeof g_path, "%s", path != nullptr ? path : "");
}

}  // namespace baracuda
