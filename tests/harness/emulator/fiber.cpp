#include "emulator/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#if BCU_FIBER_UCONTEXT
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace baracuda::emulator {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kStackBytes = 256 << 10;
#else
constexpr size_t kStackBytes = 64 << 10;
#endif

// The two ends of the switch under way. One OS thread runs the emulator at a time.
Fiber* leaving;
Fiber* entering;

void before_switch([[maybe_unused]] Fiber& from, [[maybe_unused]] Fiber& to) {
  leaving = &from, entering = &to;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from.fake_stack, to.stack, to.stack_bytes);
#endif
}

void after_switch() {
#if defined(__SANITIZE_ADDRESS__)
  const void* stack = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(entering->fake_stack, &stack, &bytes);
  if (leaving->stack) return;  // only the OS thread's own stack is learnt this way
  leaving->stack = const_cast<char*>(static_cast<const char*>(stack)), leaving->stack_bytes = bytes;
#endif
}

}  // namespace

extern "C" __attribute__((noinline, used, visibility("hidden"))) void bcu_emulator_fiber_entry() {
  after_switch();
  entering->entry(*entering);
  std::abort();
}

#if BCU_FIBER_UCONTEXT

namespace {
ucontext_t& context(Fiber& f) {
  if (!f.machine) f.machine = new ucontext_t;
  return *static_cast<ucontext_t*>(f.machine);
}
void prepare(Fiber& f) {
  ucontext_t& c = context(f);
  getcontext(&c);
  c.uc_stack.ss_sp = f.stack, c.uc_stack.ss_size = f.stack_bytes, c.uc_link = nullptr;
  makecontext(&c, &bcu_emulator_fiber_entry, 0);
}
}  // namespace

void switch_fiber(Fiber& from, Fiber& to) {
  before_switch(from, to);
  swapcontext(&context(from), &context(to));
  after_switch();
}

#else

extern "C" __attribute__((visibility("hidden"))) void bcu_emulator_switch(void** save, void* load);
asm(R"(
.text
.globl bcu_emulator_switch
.hidden bcu_emulator_switch
.type bcu_emulator_switch,@function
bcu_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size bcu_emulator_switch,.-bcu_emulator_switch
)");

namespace {
void prepare(Fiber& f) {
  auto top = reinterpret_cast<uintptr_t>(f.stack + f.stack_bytes) & ~uintptr_t{15};
  auto* sp = reinterpret_cast<void**>(top - 8);  // the entry sees the stack as after a call
  *--sp = reinterpret_cast<void*>(&bcu_emulator_fiber_entry);
  for (int saved = 0; saved < 6; ++saved) *--sp = nullptr;
  f.machine = sp;
}
}  // namespace

void switch_fiber(Fiber& from, Fiber& to) {
  before_switch(from, to);
  bcu_emulator_switch(&from.machine, to.machine);
  after_switch();
}

#endif

void create(Fiber& fiber, void (*entry)(Fiber&)) {
  void* memory = mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kGuardBytes, PROT_NONE) != 0) throw std::bad_alloc();
  fiber.stack = static_cast<char*>(memory) + kGuardBytes, fiber.stack_bytes = kStackBytes;
  fiber.entry = entry;
  prepare(fiber);
}

void restart(Fiber& fiber) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(fiber.stack, fiber.stack_bytes);
  fiber.fake_stack = nullptr;
#endif
  prepare(fiber);
}

}  // namespace baracuda::emulator
