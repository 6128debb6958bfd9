// What happens where a kernel or the host touches memory that it may not: a report, in place of a bare signal.
#pragma once
#include "emulator/heap.h"

namespace baracuda::emulator {

// Watches over a heap from the first call on.
void watch_faults(Heap& heap);
// Kernels may overrun a fiber's stack: every thread that runs them needs a stack for signals of its own.
void need_signal_stack();

}  // namespace baracuda::emulator
