// Checks of csrc/core/parallel.h that need threads or fork. `parallel_test <case>` exits 0 or says what went
// wrong.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"
#include "core/parallel.h"

namespace bc = baracuda;

namespace {

constexpr int kThreadCounts[] = {1, 2, 7};

// Every index exactly once, every chunk on a multiple of grain and full except the last, indices of workers in range.
void check_cover(int64_t n, int64_t grain) {
  std::unique_ptr<std::atomic<uint8_t>[]> seen(new std::atomic<uint8_t>[static_cast<size_t>(n) + 1]());
  std::atomic<int64_t> chunks{0};
  const int64_t step = std::max<int64_t>(grain, 1);
  bc::parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    CHECK(0 <= begin && begin < end && end <= n);
    CHECK(begin % step == 0 && (end == n || end - begin == step));
    CHECK(bc::thread_index() >= 0 && bc::thread_index() < bc::num_threads() && bc::num_threads() <= bc::max_threads());
    for (int64_t i = begin; i < end; ++i) seen[static_cast<size_t>(i)].fetch_add(1, std::memory_order_relaxed);
    chunks.fetch_add(1, std::memory_order_relaxed);
  });
  for (int64_t i = 0; i < n; ++i) CHECK(seen[static_cast<size_t>(i)].load() == 1);
  CHECK(chunks.load() == (n <= 0 ? 0 : (n - 1) / step + 1));
  CHECK(bc::thread_index() == 0);
}

void test_cover() {
  for (const int threads : kThreadCounts) {
    bc::set_num_threads(threads);
    for (const int64_t n : {0, 1, 2, 3, 7, 64, 100, 1000, 4097}) {
      for (const int64_t grain : {1, 2, 3, 8, 63, 64, 65, 1000, 4096, 1 << 20}) check_cover(n, grain);
    }
    check_cover(100000, 1);
  }
}

// parallel_for_raw takes what a careless caller may pass: grain below 1 counts as 1, an empty range runs nothing.
void test_odd_arguments() {
  bc::set_num_threads(2);
  auto count = [](void* ctx, int64_t begin, int64_t end) {
    static_cast<std::atomic<int64_t>*>(ctx)->fetch_add(end - begin);
  };
  for (const auto& [n, grain, expected] :
       {std::array<int64_t, 3>{-5, 4, 0}, {0, 4, 0}, {9, 0, 9}, {9, -3, 9}, {9, INT64_MAX, 9}}) {
    std::atomic<int64_t> total{0};
    bc::parallel_for_raw(n, grain, count, &total);
    CHECK(total.load() == expected);
  }
  // Chunk arithmetic near the end of int64.
  std::atomic<int64_t> total{0};
  bc::parallel_for_raw(INT64_MAX, INT64_MAX / 3, count, &total);
  CHECK(total.load() == INT64_MAX);
}

void test_counts() {
  for (const int threads : {1, 2, 3, 7, 8}) {
    bc::set_num_threads(threads);
    CHECK(bc::num_threads() == threads);
    // All workers of the team meet: shows that so many really run at the same time.
    std::atomic<int> arrived{0};
    bc::parallel_for(threads, 1, [&](int64_t, int64_t) {
      CHECK(bc::num_threads() == std::max(threads, 1));
      arrived.fetch_add(1);
      while (arrived.load() < threads) std::this_thread::yield();
    });
    CHECK(arrived.load() == threads);
  }
  bc::set_num_threads(1 << 30);
  CHECK(bc::num_threads() == bc::max_threads());
  bc::set_num_threads(0);
  const int standard = bc::num_threads();
  CHECK(standard >= 1 && standard <= bc::max_threads());
  const char* env = std::getenv("EXPECT_THREADS");
  if (env != nullptr) CHECK(standard == std::atoi(env));
}

void test_limit() {
  bc::set_num_threads(7);
  {
    const bc::ThreadLimit three(3);
    CHECK(bc::num_threads() == 3);
    {
      const bc::ThreadLimit five(5);  // cannot raise the outer limit
      CHECK(bc::num_threads() == 3);
      const bc::ThreadLimit none(0);
      CHECK(bc::num_threads() == 3);
    }
    {
      const bc::ThreadLimit one(1);
      const auto caller = std::this_thread::get_id();
      bc::parallel_for(100, 1, [&](int64_t, int64_t) { CHECK(std::this_thread::get_id() == caller); });
    }
    std::atomic<int> together{0}, most{0};
    bc::parallel_for(2000, 1, [&](int64_t, int64_t) {
      CHECK(bc::num_threads() == 3 && bc::thread_index() < 3);
      const int now = together.fetch_add(1) + 1;
      int seen = most.load();
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
      together.fetch_sub(1);
    });
    CHECK(most.load() <= 3);
    std::thread([] { CHECK(bc::num_threads() == 7); }).join();  // another thread's regions are not limited
  }
  CHECK(bc::num_threads() == 7);
}

void test_nested() {
  for (const int threads : kThreadCounts) {
    bc::set_num_threads(threads);
    std::atomic<int64_t> total{0};
    bc::parallel_for(20, 1, [&](int64_t outer, int64_t) {
      const int index = bc::thread_index();
      const auto self = std::this_thread::get_id();
      bc::parallel_for(50, 3, [&](int64_t begin, int64_t end) {
        CHECK(std::this_thread::get_id() == self && bc::thread_index() == index);
        for (int64_t i = begin; i < end; ++i) total.fetch_add(outer * 50 + i, std::memory_order_relaxed);
      });
      CHECK(bc::thread_index() == index);
    });
    CHECK(total.load() == 999 * 1000 / 2);
  }
}

float chunked_sum(const std::vector<float>& values) {
  constexpr int64_t kGrain = 1000;
  const auto n = static_cast<int64_t>(values.size());
  std::vector<float> parts(static_cast<size_t>((n + kGrain - 1) / kGrain));
  bc::parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    float sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += values[static_cast<size_t>(i)];
    parts[static_cast<size_t>(begin / kGrain)] = sum;
  });
  float sum = 0;
  for (const float part : parts) sum += part;
  return sum;
}

std::vector<float> sample_values() {
  std::vector<float> values(123457);
  uint32_t state = 1;
  for (float& v : values) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) * 0x1p-20f;
  }
  return values;
}

void test_sums() {
  const std::vector<float> values = sample_values();
  bc::set_num_threads(1);
  const float expected = chunked_sum(values);
  for (const int threads : {1, 2, 3, 7}) {
    bc::set_num_threads(threads);
    for (int repeat = 0; repeat < 20; ++repeat) {
      const float got = chunked_sum(values);
      CHECK(std::memcmp(&got, &expected, sizeof got) == 0);
    }
  }
}

// Eight callers at once, with the thread count changing under them: results stay, and no two regions share a worker's
// scratch.
void test_callers() {
  const std::vector<float> values = sample_values();
  bc::set_num_threads(2);
  const float expected = chunked_sum(values);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&, caller] {
      for (int repeat = 0; repeat < 25; ++repeat) {
        if (caller == 0) bc::set_num_threads(1 + repeat % 3);
        const float got = chunked_sum(values);
        CHECK(std::memcmp(&got, &expected, sizeof got) == 0);
        std::vector<std::vector<int64_t>> scratch(static_cast<size_t>(bc::max_threads()));
        bc::parallel_for(
            64, 1, [&](int64_t begin, int64_t) { scratch[static_cast<size_t>(bc::thread_index())].push_back(begin); });
        std::multiset<int64_t> all;
        for (const auto& part : scratch) all.insert(part.begin(), part.end());
        CHECK(all.size() == 64 && *all.begin() == 0 && *all.rbegin() == 63);
      }
    });
  }
  for (std::thread& t : callers) t.join();
}

// While one region holds the team, another caller runs serially at once instead of waiting for it.
void test_busy() {
  bc::set_num_threads(2);
  std::atomic<bool> inside{false}, release{false};
  std::thread holder([&] {
    bc::parallel_for(2, 1, [&](int64_t, int64_t) {
      inside = true;
      while (!release) std::this_thread::yield();
    });
  });
  while (!inside) std::this_thread::yield();
  const auto self = std::this_thread::get_id();
  int chunks = 0;
  bc::parallel_for(10, 1, [&](int64_t, int64_t) {
    CHECK(std::this_thread::get_id() == self && bc::thread_index() == 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // a second worker would come in time to be seen
    ++chunks;
  });
  CHECK(chunks == 10);
  release = true;
  holder.join();
}

// The child must finish (the alarm ends it otherwise), serially, with the same result; the parent goes on in parallel.
void fork_and_check(const std::vector<float>& values, float expected) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(20);
    const float got = chunked_sum(values);
    const bool same = std::memcmp(&got, &expected, sizeof got) == 0;
    const bool serial = bc::num_threads() == 1 && std::strcmp(bc::thread_runtime(), "serial (forked child)") == 0;
    bc::set_num_threads(2);
    _exit(same && serial && bc::num_threads() == 1 && bc::max_threads() >= 1 ? 0 : 3);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void test_fork() {
  bc::init_parallel();
  const std::vector<float> values = sample_values();
  float plain = 0;
  for (size_t begin = 0; begin < values.size(); begin += 1000) {
    float sum = 0;
    for (size_t i = begin; i < std::min(values.size(), begin + 1000); ++i) sum += values[i];
    plain += sum;
  }
  fork_and_check(values, plain);  // before the first region
  bc::set_num_threads(2);
  CHECK(chunked_sum(values) == plain);
  fork_and_check(values, plain);  // with the team up
  CHECK(bc::num_threads() == 2 && chunked_sum(values) == plain);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) chunked_sum(values);
  });
  for (int i = 0; i < 10; ++i) fork_and_check(values, plain);  // while a region is running
  stop = true;
  busy.join();
}

// For test_parallel.py, which sets the environment and reads the output.
void show_settings() {
  std::string error = "not cleared";
  CHECK(bc::check_thread_settings(error) == error.empty());
  std::puts(error.empty() ? "ok" : error.c_str());
}

// Not a check: prints the cost of an empty region in nanoseconds, median of blocks.
// A region that its second worker holds up, if it takes part; whether all chunks ran on the calling thread.
bool held_up() {
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> alone{true}, came{false};
  bc::parallel_for(2, 1, [&](int64_t, int64_t) {
    if (std::this_thread::get_id() != caller) {
      alone = false, came = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    } else {
      for (int i = 0; i < 100 && !came; ++i) std::this_thread::yield();
    }
  });
  return alone;
}

// Stalls are noticed, and then regions are serial.
void test_paced() {
  bc::set_num_threads(2);
  CHECK(bc::thread_pace().on && bc::thread_pace().stalls == 0 && !bc::thread_pace().serial);
  for (int i = 0; i < 5000; ++i) {
    const bool before = bc::thread_pace().serial, alone = held_up();
    if (!before || !bc::thread_pace().serial) continue;
    CHECK(alone && bc::thread_pace().stalls > 0);
    check_cover(1000, 3);
    return;
  }
  CHECK(!"no region was serial after a stall");
}

void test_unpaced() {
  bc::set_num_threads(2);
  for (int i = 0; i < 40; ++i) held_up();
  CHECK(!bc::thread_pace().on && bc::thread_pace().stalls == 0 && !bc::thread_pace().serial);
}

void bench() {
  bc::set_num_threads(2);
  auto nothing = [](int64_t, int64_t) {};
  for (int i = 0; i < 1000; ++i) bc::parallel_for(2, 1, nothing);
  std::vector<double> blocks;
  for (int block = 0; block < 101; ++block) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 1000; ++i) bc::parallel_for(2, 1, nothing);
    blocks.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / 1000);
  }
  std::sort(blocks.begin(), blocks.end());
  std::printf("%s\nempty fork-join, 2 threads: p25 %.0f ns, median %.0f ns, p75 %.0f ns\n", bc::thread_runtime(),
              blocks[25], blocks[50], blocks[75]);
  bc::set_num_threads(1);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 100000; ++i) bc::parallel_for(2, 1, nothing);
  std::printf("serial call: %.1f ns\n",
              std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / 100000);
}

}  // namespace

int main(int argc, char** argv) {
  const std::pair<const char*, void (*)()> cases[] = {{"cover", test_cover},     {"odd_arguments", test_odd_arguments},
                                                      {"counts", test_counts},   {"limit", test_limit},
                                                      {"nested", test_nested},   {"sums", test_sums},
                                                      {"callers", test_callers}, {"busy", test_busy},
                                                      {"fork", test_fork},       {"paced", test_paced},
                                                      {"unpaced", test_unpaced}, {"settings", show_settings},
                                                      {"bench", bench}};
  for (const auto& [name, run] : cases) {
    if (argc == 2 && std::strcmp(argv[1], name) == 0) {
      run();
      std::puts(bc::thread_runtime());
      return 0;
    }
  }
  std::fputs("usage: parallel_test <case>\n", stderr);
  return 2;
}
