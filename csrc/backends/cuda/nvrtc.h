// The part of NVRTC that baracuda calls, declared here because the library is opened at run time.
#pragma once
#include <cstddef>

namespace baracuda::cuda::nvrtc {

using Program = void*;
struct Api {
  int (*version)(int* major, int* minor);
  const char* (*error)(int);
  int (*create)(Program*, const char* text, const char* name, int headers, const char* const* texts,
                const char* const* names);
  int (*compile)(Program, int options, const char* const* option);
  int (*log_size)(Program, size_t*);
  int (*log)(Program, char*);
  int (*cubin_size)(Program, size_t*);
  int (*cubin)(Program, char*);
  int (*destroy)(Program*);
};
#define BCU_NVRTC_FUNCTIONS(X)          \
  X(version, "nvrtcVersion")            \
  X(error, "nvrtcGetErrorString")       \
  X(create, "nvrtcCreateProgram")       \
  X(compile, "nvrtcCompileProgram")     \
  X(log_size, "nvrtcGetProgramLogSize") \
  X(log, "nvrtcGetProgramLog")          \
  X(cubin_size, "nvrtcGetCUBINSize")    \
  X(cubin, "nvrtcGetCUBIN")             \
  X(destroy, "nvrtcDestroyProgram")

}  // namespace baracuda::cuda::nvrtc
