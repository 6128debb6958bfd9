// What the instruction set of the level that is being compiled has beyond the compiler's vectors, by the same names for
// all of them. Intrinsics are in these headers and nowhere else.
//
// BCU_LEVEL_F16: load_halves, store_halves; BCU_LEVEL_BF16: store_bf16, dot_bf16; BCU_LEVEL_PAIRS: dot_pairs;
// BCU_LEVEL_QUADS: dot_quads; BCU_LEVEL_PARTS: load_first; BCU_LEVEL_EIGHTS: Floats8, floats_of_bytes, two_halves,
// words_of_bytes. Where one is 0 the level lacks these functions.
#pragma once

#if defined(__x86_64__)
#include "host/level_x86.h"
#elif defined(__aarch64__)
#include "host/level_arm.h"
#else
#error "csrc/host has a level_*.h for x86-64 and aarch64 only"
#endif
