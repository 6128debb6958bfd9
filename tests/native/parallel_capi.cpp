// A C face of parallel.h for test_parallel.py, which loads it beside torch and other OpenMP users.
#include <atomic>
#include <chrono>
#include <thread>

#include "core/parallel.h"

#define BCU_TEST_API extern "C" BCU_API

BCU_TEST_API const char* bcu_test_thread_runtime() { return baracuda::thread_runtime(); }
BCU_TEST_API int bcu_test_num_threads() { return baracuda::num_threads(); }
BCU_TEST_API int bcu_test_max_threads() { return baracuda::max_threads(); }
BCU_TEST_API void bcu_test_set_num_threads(int n) { baracuda::set_num_threads(n); }
BCU_TEST_API void bcu_test_set_bundled(const char* path) { baracuda::set_bundled_thread_runtime(path); }

// Number of chunks that ran, plus 1000 when two workers were inside at the same time. For the second one it waits so
// long.
BCU_TEST_API int bcu_test_region(int milliseconds) {
  std::atomic<int> chunks{0}, inside{0};
  std::atomic<bool> met{false};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  baracuda::parallel_for(8, 1, [&](int64_t, int64_t) {
    inside.fetch_add(1);
    while (!met && std::chrono::steady_clock::now() < deadline) {
      if (inside.load() > 1) met = true;
      std::this_thread::yield();
    }
    inside.fetch_sub(1);
    chunks.fetch_add(1);
  });
  return chunks.load() + (met ? 1000 : 0);
}
