// Checks of csrc/backends/cpu/shares.h: each chunk is taken once, one's own first. Exits 0 or says what went wrong.
#include "backends/cpu/shares.h"

#include <thread>
#include <vector>

#include "check.h"

using baracuda::Shares;

namespace {

void one_thread_that_comes_takes_all() {
  for (int64_t chunks : {1, 2, 3, 7, 64, 65, 1000}) {
    for (int threads : {1, 2, 3, 8, Shares::kMost, Shares::kMost + 1, 1024}) {
      for (int index : {0, 1, threads - 1}) {
        if (index >= threads) continue;
        Shares shares(chunks, threads);
        std::vector<int> times(chunks);
        CHECK(shares.take(index, [&](int64_t chunk) { ++times[chunk]; }) == chunks);
        for (int n : times) CHECK(n == 1);
        CHECK(shares.take(0, [](int64_t) { std::exit(1); }) == 0);
      }
    }
  }
}

// The parts of an array that threads begin with are the same ones whatever the number of chunks.
void own_shares_come_first() {
  for (int64_t chunks : {4, 6, 100}) {
    Shares shares(chunks, 4);
    int64_t last = -1;
    int taken = 0;
    shares.take(2, [&](int64_t chunk) {
      if (taken == 0) CHECK(chunk == (chunks == 6 ? 4 : chunks / 2));
      if (++taken <= chunks / 4) CHECK(last < 0 || chunk == last + 1);
      last = chunk;
    });
  }
}

// While one thread is held up in its first chunk, the other does its own share and all that is left.
void who_is_done_helps() {
  Shares shares(10, 2);
  int64_t others = 0, own = 0;
  std::vector<int64_t> seen;
  own = shares.take(0, [&](int64_t chunk) {
    CHECK(chunk == 0);
    others = shares.take(1, [&](int64_t c) { seen.push_back(c); });
  });
  CHECK(own == 1 && others == 9);
  CHECK((seen == std::vector<int64_t>{5, 6, 7, 8, 9, 1, 2, 3, 4}));
}

void threads_take_each_chunk_once() {
  for (int round = 0; round < 200; ++round) {
    constexpr int64_t kChunks = 97;
    Shares shares(kChunks, 3);
    std::vector<std::atomic<int>> times(kChunks);
    std::atomic<int64_t> taken{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&, i] { taken += shares.take(i, [&](int64_t chunk) { ++times[chunk]; }); });
    for (auto& thread : threads) thread.join();
    CHECK(taken == kChunks);
    for (auto& n : times) CHECK(n == 1);
  }
}

}  // namespace

int main() {
  one_thread_that_comes_takes_all();
  own_shares_come_first();
  who_is_done_helps();
  threads_take_each_chunk_once();
}
