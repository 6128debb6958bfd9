// What `g++ -fsanitize=thread` makes bodies call before loads and stores. libtsan is not linked: these stand in for it.
// Hidden, because libasan and libtsan export weak functions of such names, which would silently win.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "emulator/emulator.h"

using baracuda::emulator::access;
using baracuda::emulator::AccessKind;
using baracuda::emulator::in_body;
using baracuda::emulator::watch;

namespace {

void note(const void* p, size_t bytes, AccessKind kind, const void* pc) {
  if (watch.on && in_body(__builtin_frame_address(0))) access(p, static_cast<uint32_t>(bytes), kind, pc);
}

}  // namespace

#pragma GCC visibility push(hidden)
extern "C" {

#define BCU_PC __builtin_return_address(0)
#define BCU_HOOKS(n)                                                                        \
  void __tsan_read##n(void* p) { note(p, n, AccessKind::Read, BCU_PC); }                    \
  void __tsan_write##n(void* p) { note(p, n, AccessKind::Write, BCU_PC); }                  \
  void __tsan_unaligned_read##n(void* p) { note(p, n, AccessKind::Read, BCU_PC); }          \
  void __tsan_unaligned_write##n(void* p) { note(p, n, AccessKind::Write, BCU_PC); }        \
  void __tsan_volatile_read##n(void* p) { note(p, n, AccessKind::Read, BCU_PC); }           \
  void __tsan_volatile_write##n(void* p) { note(p, n, AccessKind::Write, BCU_PC); }         \
  void __tsan_unaligned_volatile_read##n(void* p) { note(p, n, AccessKind::Read, BCU_PC); } \
  void __tsan_unaligned_volatile_write##n(void* p) { note(p, n, AccessKind::Write, BCU_PC); }
BCU_HOOKS(1)
BCU_HOOKS(2)
BCU_HOOKS(4)
BCU_HOOKS(8)
BCU_HOOKS(16)

void __tsan_read_range(void* p, size_t n) { note(p, n, AccessKind::Read, BCU_PC); }
void __tsan_write_range(void* p, size_t n) { note(p, n, AccessKind::Write, BCU_PC); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void*, void*) {}
void __tsan_vptr_read(void*) {}

// Of launchers, which are in the same units: the counts of shared pointers, guards of local statics.
uint8_t __tsan_atomic8_load(const volatile void* p, int) {
  return __atomic_load_n(static_cast<const volatile uint8_t*>(p), __ATOMIC_SEQ_CST);
}
uint32_t __tsan_atomic32_fetch_add(volatile void* p, uint32_t n, int) {
  return __atomic_fetch_add(static_cast<volatile uint32_t*>(p), n, __ATOMIC_SEQ_CST);
}
}
#pragma GCC visibility pop
