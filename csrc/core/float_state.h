// The floating-point state that kernels compute in, whatever the caller's is: rounding to nearest-even, subnormal
// numbers kept, no traps. Promises of rows are about this state, and it is each thread's own.
#pragma once
#include <cstdint>

namespace baracuda {

// While it lives, the calling thread computes in that state. Where it does already, nothing is written: only reading is
// on the path of a small call. Status flags that such a thread finds raised afterwards are the kernel's, as those of
// any function.
class FloatState {
 public:
#if defined(__x86_64__)
  FloatState() noexcept : before_(__builtin_ia32_stmxcsr()) {
    if ((before_ & ~kFlags) != kOwn) [[unlikely]]
      write(kOwn);
  }
  ~FloatState() {
    if ((before_ & ~kFlags) != kOwn) [[unlikely]]
      write(before_);
  }

 private:
  static constexpr unsigned kFlags = 0x3f, kOwn = 0x1f80;  // all exceptions masked, and nothing else
  // Nothing that is read or stored on one side of it comes to the other.
  static void write(unsigned state) noexcept {
    asm volatile("" ::: "memory");
    __builtin_ia32_ldmxcsr(state);
    asm volatile("" ::: "memory");
  }
  const unsigned before_;
#elif defined(__aarch64__)
  FloatState() noexcept {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    if (before_ != kOwn) [[unlikely]] {
      asm volatile("msr fpcr, %0" ::"r"(kOwn) : "memory");
    }
  }
  ~FloatState() {
    if (before_ != kOwn) [[unlikely]] {
      asm volatile("msr fpcr, %0" ::"r"(before_) : "memory");
    }
  }

 private:
  static constexpr uint64_t kOwn = 0;
  uint64_t before_;
#else
#error "which register holds rounding mode and traps?"
#endif

 public:
  FloatState(const FloatState&) = delete;
  FloatState& operator=(const FloatState&) = delete;
};

}  // namespace baracuda
