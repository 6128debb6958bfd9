// The kernels of the .metal texts, as msl2host.py has translated them.
#pragma once
#include <cstdint>
#include <span>

#include "emulator/emulator.h"

namespace baracuda::emulator {

struct MetalText {
  const Kernel* kernels;
  uint32_t count;
  uint64_t hash;  // of the text that they were translated from: FNV-1a
};
std::span<const MetalText> metal_texts();

}  // namespace baracuda::emulator
