// Libraries of others that are opened at run time, never linked: cuBLASLt, cuDNN and NVRTC.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/api.h"

namespace baracuda {

enum class Library : int32_t { CublasLt, Cudnn, Nvrtc, Count };

struct FoundLibrary {
  void* handle = nullptr;  // null: it cannot be used here, for `reason`
  std::string file;        // what was opened, as the loader names it
  std::string from;        // "the process", "a wheel", "the system" or the variable that names it
  std::string version;     // "13.0.2"
  std::string reason;
};

// "cublaslt"
BCU_API const char* library_name(Library which);
// Looked for by the first question, which stays the answer: BARACUDA_CUBLASLT_LIBRARY (..._CUDNN_..., ..._NVRTC_...) if
// it names a file, and nothing else then; what the process has open; the nvidia-* wheels; what the system's loader
// finds. Never closed again.
BCU_API const FoundLibrary& library(Library which);
// Its function, or null where the library or the function is missing.
BCU_API void* library_symbol(Library which, const char* symbol);

// The folders that wheels are unpacked into, in order (Python's sys.path); before the first question.
BCU_API void set_wheel_folders(std::vector<std::string> folders);
// Those; for hosts without Python, the folder that this library's own wheel was unpacked into.
std::vector<std::string> wheel_folders();

}  // namespace baracuda
