// The translated .metal texts, which the fake Metal compiles by knowing them.
#include <array>
#include <span>

#include "emulator/emulator.h"
#include "emulator/fakemetal/texts.h"

namespace baracuda::emulator {

#define BCU_TEXT(name)                          \
  extern const Kernel kMetalText_##name[];      \
  extern const uint32_t kMetalTextCount_##name; \
  extern const uint64_t kMetalTextHash_##name;
#include "metal_texts.inc"
#undef BCU_TEXT

std::span<const MetalText> metal_texts() {
#define BCU_TEXT(name) MetalText{kMetalText_##name, kMetalTextCount_##name, kMetalTextHash_##name},
  static const auto texts = std::to_array<MetalText>({
#include "metal_texts.inc"
  });
#undef BCU_TEXT
  return texts;
}

}  // namespace baracuda::emulator
