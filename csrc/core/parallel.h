// The CPU parallel runtime. parallel.cpp is the only file that knows which thread library is underneath.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "core/api.h"

namespace baracuda {

using ParallelBody = void (*)(void* ctx, int64_t begin, int64_t end);

// Runs body(begin, end) over [0, n) in chunks of `grain` (the last one may be shorter). Chunk boundaries depend on n
// and grain only, never on the thread count, so results cannot depend on it either; which thread runs which chunk, and
// in which order, is not fixed. Runs serially, over the same chunks, when n <= grain, when one thread is set, inside a
// parallel body (ours or another OpenMP user's), while another caller's region has the team, in a forked child, where
// there is no thread runtime, and for a while after a region whose team made it slower than one thread is (pace.h;
// BARACUDA_PACE_THREADS=0 keeps the team). Never call it between fork() and exec(). A body must not throw: an exception
// that leaves it ends the process.
BCU_API void parallel_for_raw(int64_t n, int64_t grain, ParallelBody body, void* ctx) noexcept;

// The same for any callable f(int64_t begin, int64_t end); no allocation, and no call into the runtime for a single
// chunk.
template <class F>
inline void parallel_for(int64_t n, int64_t grain, F&& f) {
  using Fn = std::remove_reference_t<F>;
  if (n <= grain) {
    if (n > 0) f(int64_t{0}, n);
    return;
  }
  parallel_for_raw(
      n, grain, [](void* ctx, int64_t begin, int64_t end) noexcept { (*static_cast<Fn*>(ctx))(begin, end); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

// Threads that a region started here would use at most; inside a body, the number that the running region uses.
// In this order: the running region's count, set_num_threads, BARACUDA_NUM_THREADS, what OpenMP would use now
// (OMP_NUM_THREADS, torch.set_num_threads, threadpoolctl, else the affinity mask); never more than an active
// ThreadLimit or max_threads().
BCU_API int num_threads() noexcept;

// n <= 0 returns to the default; values above max_threads() count as max_threads().
BCU_API void set_num_threads(int n) noexcept;

// Index of the calling worker in [0, num_threads()) inside a body (a nested region keeps its worker's index); 0
// outside.
BCU_API int thread_index() noexcept;

// The largest value that num_threads() can ever take in this process: thread_index() < max_threads(). For sizing
// workspace per thread; at least 8, so a kernel that needs much per thread takes its count from its plan and runs under
// a ThreadLimit.
BCU_API int max_threads() noexcept;

// Whether regions look out for such stalls, how many were noticed, and whether regions are serial now because of one.
struct ThreadPace {
  bool on;
  int64_t stalls;
  bool serial;
};
BCU_API ThreadPace thread_pace() noexcept;
// Whether regions look out for stalls, whatever BARACUDA_PACE_THREADS says: tests want the whole team to run.
BCU_API void set_thread_pacing(bool on) noexcept;

// Which runtime is in use: "shared: /path/libgomp.so.1", "system: ...", "bundled: ..." or "serial (why)". Valid until
// process end.
BCU_API const char* thread_runtime() noexcept;

// To be called once when the library is loaded (by the binding at import): registers the fork handler, so that a child
// forked before the first region is known as one. Opens no library. Safe to repeat.
BCU_API void init_parallel() noexcept;

// False with a message when BARACUDA_NUM_THREADS is set to something other than a positive integer, or
// BARACUDA_PACE_THREADS to something other than 0 or 1 (they are ignored then).
BCU_API bool check_thread_settings(std::string& error);

// Path of a libgomp copy to open when the process and the system have none, in place of fallback/libgomp.so.1 beside
// this library. Effective before the first region only.
BCU_API void set_bundled_thread_runtime(const char* path) noexcept;

// Sets the calling thread's limit (0 = none) and returns the one before.
BCU_API int exchange_thread_limit(int limit) noexcept;

// Limits the regions that the calling thread starts while it lives, for plans with PlanPreference(threads=k); k <= 0
// sets no limit. An inner limit can only lower an outer one.
class ThreadLimit {
 public:
  explicit ThreadLimit(int k) noexcept : before_(exchange_thread_limit(0)) {
    const int outer = before_;
    exchange_thread_limit(k > 0 && (outer == 0 || k < outer) ? k : outer);
  }
  ~ThreadLimit() { exchange_thread_limit(before_); }
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int before_;
};

// Calls body(data, chunk) for chunks [0, n) on threads of its own, and returns when all have returned.
using HostParallelFor = void (*)(void* context, int64_t n, void (*body)(void* data, int64_t chunk), void* data);

// While it lives, regions that the calling thread starts run on the host's threads; null changes nothing. Of the
// host's threads no more than num_threads() are let in at once.
class HostThreads {
 public:
  BCU_API HostThreads(HostParallelFor run, void* context) noexcept;
  BCU_API ~HostThreads();
  HostThreads(const HostThreads&) = delete;
  HostThreads& operator=(const HostThreads&) = delete;

  HostParallelFor run;
  void* context;

 private:
  const HostThreads* before_;
};

}  // namespace baracuda
