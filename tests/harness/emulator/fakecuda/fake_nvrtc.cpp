// The part of NVRTC that baracuda calls: texts are compiled for the emulator by the compiler that built it, and what
// comes out is a library that the fake cudart loads. Options are checked as what makes the numbers right on a card.
#include <dlfcn.h>
#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/api.h"
#include "emulator/emulator.h"
#include "emulator/fakecuda/jit.h"
#include "emulator/fakecuda/runtime.h"

using namespace baracuda;
using namespace baracuda::emulator;

namespace {

enum Code : int { kSuccess = 0, kInvalidInput = 3, kInvalidProgram = 4, kInvalidOption = 5, kCompilation = 6 };

struct FakeProgram {
  std::string text, log, binary;
};

int64_t compiled = 0;

bool has(const std::vector<std::string>& options, const char* wanted) {
  for (const std::string& option : options)
    if (option == wanted) return true;
  return false;
}

// The part of every text that is the same is compiled beforehand.
int compile(FakeProgram& p) {
  std::string known, source = p.text;
  const std::string header = std::string(BCU_EMULATOR_PRELUDES) + "/expr_prelude_cuda.h";
  if (read_file(header, known) && p.text.compare(0, known.size(), known) == 0)
    source = "#include \"expr_prelude_cuda.h\"\n" + p.text.substr(known.size());
  const std::string folder = new_folder(), file = folder + "/fused.cpp", library = folder + "/fused.so";
  write_file(file, source);
  if (!compile_library(file, library, "-I" BCU_EMULATOR_PRELUDES, p.log)) return kCompilation;
  return read_file(library, p.binary) ? kSuccess : kCompilation;
}

// A library's bytes, by what its header says.
size_t size_of(const void* code) {
  Elf64_Ehdr head;
  std::memcpy(&head, code, sizeof head);
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return 0;
  return head.e_shoff + size_t{head.e_shnum} * head.e_shentsize;
}

}  // namespace

extern "C" {

// How many texts were compiled.
BCU_API int32_t bcu_fake_nvrtc_compiled() { return static_cast<int32_t>(compiled); }

BCU_API int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0, kSuccess; }

BCU_API const char* nvrtcGetErrorString(int code) { return code == kCompilation ? "compilation" : "invalid"; }

BCU_API int nvrtcCreateProgram(void** out, const char* text, const char*, int headers, const char* const* texts,
                               const char* const* names) {
  for (int k = 0; k < headers; ++k)
    if (!texts[k] || !names[k]) return kInvalidInput;
  *out = new FakeProgram{text, "", ""};
  return kSuccess;
}

BCU_API int nvrtcCompileProgram(void* program, int count, const char* const* option) {
  const std::vector<std::string> options(option, option + count);
  bool card = false;
  for (const std::string& o : options) card |= o.rfind("--gpu-architecture=sm_", 0) == 0 && o.size() > 22;
  if (!card || !has(options, "--fmad=false") || !has(options, "--std=c++17")) return kInvalidOption;
  ++compiled;
  return compile(*static_cast<FakeProgram*>(program));
}

BCU_API int nvrtcGetProgramLogSize(void* program, size_t* bytes) {
  *bytes = static_cast<FakeProgram*>(program)->log.size() + 1;
  return kSuccess;
}

BCU_API int nvrtcGetProgramLog(void* program, char* out) {
  const std::string& log = static_cast<FakeProgram*>(program)->log;
  std::memcpy(out, log.c_str(), log.size() + 1);
  return kSuccess;
}

BCU_API int nvrtcGetCUBINSize(void* program, size_t* bytes) {
  *bytes = static_cast<FakeProgram*>(program)->binary.size();
  return *bytes ? kSuccess : kInvalidProgram;
}

BCU_API int nvrtcGetCUBIN(void* program, char* out) {
  const std::string& binary = static_cast<FakeProgram*>(program)->binary;
  std::memcpy(out, binary.data(), binary.size());
  return kSuccess;
}

BCU_API int nvrtcDestroyProgram(void** program) {
  delete static_cast<FakeProgram*>(*program);
  *program = nullptr;
  return kSuccess;
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
  BCU_FAKE_BEGIN;
  const size_t bytes = size_of(code);
  void* opened = bytes ? open_library(code, bytes) : nullptr;
  if (!opened) return r.raise(cudaErrorInvalidKernelImage, "a library that is none");
  *library = static_cast<cudaLibrary_t>(opened);
  return cudaSuccess;
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  BCU_FAKE_BEGIN;
  dlclose(library);
  return cudaSuccess;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  BCU_FAKE_BEGIN;
  void* found = dlsym(library, name);
  if (!found) return r.raise(cudaErrorSymbolNotFound, std::string("no kernel ") + name);
  *kernel = static_cast<cudaKernel_t>(found);
  return cudaSuccess;
}

}  // extern "C"
