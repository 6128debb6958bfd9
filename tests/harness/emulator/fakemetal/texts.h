// The kernels of the .metal texts, as msl2host.py has translated them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/emulator.h"

namespace baracuda::emulator {

struct MetalText {
  const Kernel* kernels;
  uint32_t count;
  uint64_t hash;  // of the text that they were translated from: FNV-1a
};
// Those of the families, and what was compiled since.
std::vector<MetalText>& metal_texts();
// Translates and compiles a text that is none of them; false with what was printed.
bool compile_text(const std::string& text, uint64_t hash, std::string& printed);

}  // namespace baracuda::emulator
