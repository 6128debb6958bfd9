// What the CPU kernels of gated activations have in units of their own.
#pragma once
#include "core/row.h"

namespace baracuda::gated {

// Codes instead of values. (Beside the loops of cpu.cpp, GCC would inline less into these: 13 times slower for geglu.)
template <class Gate>
void coded(const Launch& launch);

}  // namespace baracuda::gated
