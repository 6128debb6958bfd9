#include "backends/cpu/pool.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstdint>

namespace baracuda {
namespace {

struct Job {
  void (*fn)(void*) = nullptr;
  void* data = nullptr;
  unsigned threads = 0;
};

constinit Job g_job;
constinit std::atomic<uint32_t> g_round{0};    // raised when there is a job
constinit std::atomic<uint32_t> g_working{0};  // workers that have not done with it
constinit unsigned g_workers = 0;
constexpr unsigned kMostThreads = 1024;
constinit uint32_t g_first[kMostThreads] = {};  // the round before the first one of each worker
constinit thread_local unsigned t_number = 0;

// Every worker answers every job, so that none can still be reading one when the next is written.
void* work(void* number) {
  t_number = static_cast<unsigned>(reinterpret_cast<uintptr_t>(number));
  uint32_t seen = g_first[t_number];
  for (;;) {
    g_round.wait(seen, std::memory_order_acquire);
    seen = g_round.load(std::memory_order_acquire);
    if (t_number < g_job.threads) g_job.fn(g_job.data);
    if (g_working.fetch_sub(1, std::memory_order_acq_rel) == 1) g_working.notify_one();
  }
}

// Signals are for the threads of the program.
void add_workers(unsigned wanted) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t detached;
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  for (pthread_t thread; g_workers < wanted && g_workers + 1 < kMostThreads; ++g_workers) {
    const uintptr_t number = g_workers + 1;
    g_first[number] = g_round.load(std::memory_order_relaxed);
    if (pthread_create(&thread, &detached, &work, reinterpret_cast<void*>(number)) != 0) break;
  }
  pthread_attr_destroy(&detached);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

void pool_parallel(void (*fn)(void*), void* data, unsigned threads, unsigned) {
  if (g_workers + 1 < threads) add_workers(threads - 1);
  g_job = {fn, data, threads};
  g_working.store(g_workers, std::memory_order_relaxed);
  g_round.fetch_add(1, std::memory_order_release);
  g_round.notify_all();
  fn(data);
  for (uint32_t left; (left = g_working.load(std::memory_order_acquire)) != 0;)
    g_working.wait(left, std::memory_order_acquire);
}

int pool_thread_num() { return static_cast<int>(t_number); }

}  // namespace baracuda
