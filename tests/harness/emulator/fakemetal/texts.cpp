// The translated .metal texts, which the fake Metal compiles by knowing them; others it has translated and compiled.
// What was compiled is kept in BARACUDA_FAKE_METAL_TEXTS for other processes, if that names a folder.
#include "emulator/fakemetal/texts.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "emulator/emulator.h"
#include "emulator/fakecuda/jit.h"

namespace baracuda::emulator {

#define BCU_TEXT(name)                          \
  extern const Kernel kMetalText_##name[];      \
  extern const uint32_t kMetalTextCount_##name; \
  extern const uint64_t kMetalTextHash_##name;
#include "metal_texts.inc"
#undef BCU_TEXT

std::vector<MetalText>& metal_texts() {
#define BCU_TEXT(name) MetalText{kMetalText_##name, kMetalTextCount_##name, kMetalTextHash_##name},
  static auto* texts = new std::vector<MetalText>{
#include "metal_texts.inc"
  };
#undef BCU_TEXT
  return *texts;
}

namespace {

bool translate(const std::string& text, std::string& binary, std::string& printed) {
  const std::string prelude = BCU_EMULATOR_METAL_PRELUDE, folder = new_folder();
  const std::string metal = folder + "/fused.metal", host = folder + "/fused.cpp", library = folder + "/fused.so";
  return write_file(metal, text) &&
         run_command(std::string(BCU_EMULATOR_MSL2HOST) + " --behind " + prelude + " " + metal + " " + host, printed) &&
         compile_library(host, library, "", printed) && read_file(library, binary);
}

}  // namespace

bool compile_text(const std::string& text, uint64_t hash, std::string& printed) {
  const char* folder = std::getenv("BARACUDA_FAKE_METAL_TEXTS");
  const std::string kept = folder && *folder ? std::string(folder) + "/" + std::to_string(hash) + ".so" : "";
  std::string binary;
  if (kept.empty() || !read_file(kept, binary)) {
    if (!translate(text, binary, printed)) return false;
    const std::string own = kept + "." + std::to_string(getpid());
    std::error_code ignored;
    if (folder) std::filesystem::create_directories(folder, ignored);
    if (!kept.empty() && write_file(own, binary)) std::filesystem::rename(own, kept, ignored);
  }
  void* library = open_library(binary.data(), binary.size());
  if (!library) return printed = "its library cannot be opened", false;
  uint32_t count = 0;
  const auto kernels = reinterpret_cast<const Kernel* (*)(uint32_t*)>(dlsym(library, "kernels"));
  const Kernel* first = kernels(&count);
  metal_texts().push_back({first, count, hash});
  return true;
}

}  // namespace baracuda::emulator
