// What g++ calls where a body overflows, shifts too far, leaves a local array or loads from a misaligned address:
// UBSan's checks with reports of our own, because libubsan cannot be combined with the hooks of hooks.cpp.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "emulator/emulator.h"

namespace {

// The first member of whatever GCC passes.
struct Where {
  const char* file;
  uint32_t line, column;
};

[[noreturn]] void report(const char* what, const void* data) {
  const auto* where = static_cast<const Where*>(data);
  if (baracuda::emulator::in_body(__builtin_frame_address(0)))
    baracuda::emulator::fail("%s at %s:%u", what, where->file, where->line);
  std::fprintf(stderr, "%s at %s:%u\n", what, where->file, where->line);
  std::abort();
}

}  // namespace

#pragma GCC visibility push(hidden)
extern "C" {

void __ubsan_handle_add_overflow(void* data, void*, void*) { report("INTEGER OVERFLOW in a sum", data); }
void __ubsan_handle_sub_overflow(void* data, void*, void*) { report("INTEGER OVERFLOW in a difference", data); }
void __ubsan_handle_mul_overflow(void* data, void*, void*) { report("INTEGER OVERFLOW in a product", data); }
void __ubsan_handle_negate_overflow(void* data, void*) { report("INTEGER OVERFLOW in a negation", data); }
void __ubsan_handle_divrem_overflow(void* data, void*, void*) { report("INTEGER DIVISION by zero or overflow", data); }
void __ubsan_handle_shift_out_of_bounds(void* data, void*, void*) { report("SHIFT by too many bits", data); }
void __ubsan_handle_out_of_bounds(void* data, void*) { report("OUT OF BOUNDS of a local array", data); }
void __ubsan_handle_type_mismatch_v1(void* data, void*) { report("MISALIGNED address", data); }
}
#pragma GCC visibility pop
