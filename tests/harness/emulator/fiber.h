// Stacks that one OS thread switches between: an x86-64 switch of nine instructions, ucontext on other processors.
#pragma once
#include <cstddef>

#if defined(__x86_64__) && !defined(BCU_FIBER_UCONTEXT)
#define BCU_FIBER_UCONTEXT 0
#elif !defined(BCU_FIBER_UCONTEXT)
#define BCU_FIBER_UCONTEXT 1
#endif

namespace baracuda::emulator {

inline constexpr size_t kGuardBytes = 512 << 10;  // out of reach, below each stack

struct Fiber {
  void* machine = nullptr;  // the saved stack pointer, or a ucontext_t
  char* stack = nullptr;    // null: the OS thread's own
  size_t stack_bytes = 0;
  void* fake_stack = nullptr;  // AddressSanitizer's
  void (*entry)(Fiber&) = nullptr;
};

// Maps a stack with a guard page below it. The entry never returns: it switches away for good.
void create(Fiber& fiber, void (*entry)(Fiber&));
// Forgets what the fiber was doing; it starts at its entry again.
void restart(Fiber& fiber);
void switch_fiber(Fiber& from, Fiber& to);

}  // namespace baracuda::emulator
