#include "emulator/faults.h"

#include <signal.h>

#include <cstdio>
#include <memory>

#include "emulator/emulator.h"

namespace baracuda::emulator {
namespace {

Heap* watched = nullptr;
struct sigaction before;

// A kernel that leaves its memory ends with a report; a host that enters the device's memory is told before it dies.
void on_fault(int, siginfo_t* info, void*) {
  std::string where = watched->describe(info->si_addr);
  if (running()) {
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGSEGV), sigaddset(&set, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    Position at = position();
    if (below_own_stack(info->si_addr))
      fail("STACK OVERFLOW: thread %u has used up the stack that the emulator gives it", at.tid);
    fail("OUT OF BOUNDS: thread %u of block (%u, %u, %u) touches address %p: %s", at.tid, at.bid[0], at.bid[1],
         at.bid[2], info->si_addr, where.empty() ? "not device memory" : where.c_str());
  }
  if (!where.empty()) std::fprintf(stderr, "emulator: the host touches %s\n", where.c_str());
  sigaction(SIGSEGV, &before, nullptr);  // and the instruction faults again
}

}  // namespace

void watch_faults(Heap& heap) {
  if (watched) return;
  watched = &heap;
  struct sigaction action{};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, &before);
}

void need_signal_stack() {
  thread_local std::unique_ptr<char[]> stack;
  stack_t now{};
  if (stack || sigaltstack(nullptr, &now) != 0 || !(now.ss_flags & SS_DISABLE)) return;
  constexpr size_t kBytes = 64 << 10;
  stack = std::make_unique<char[]>(kBytes);
  stack_t mine{};
  mine.ss_sp = stack.get(), mine.ss_size = kBytes;
  sigaltstack(&mine, nullptr);
}

}  // namespace baracuda::emulator
