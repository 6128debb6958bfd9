// Which thread takes which chunks of a region. Each has a share of its own, the same part of an array in every region
// over one, so that its caches still hold what it wrote there; whoever is done takes from what the others have left.
// The sum of rows of 24 MB: 215 us where two threads take chunk by chunk in turns, 177 us in shares.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

namespace baracuda {

class Shares {
 public:
  static constexpr int kMost = 64;  // threads beyond it begin in a share that another one begins in, too

  Shares(int64_t chunks, int threads) : count_(std::clamp(threads, 1, kMost)) {
    for (int64_t s = 0; s < count_; ++s) {
      shares_[s].next.store(first(s, chunks), std::memory_order_relaxed);
      shares_[s].end = first(s + 1, chunks);
    }
  }

  // Calls run(chunk) for those that thread `index` gets; returns how many those were.
  template <class Run>
  int64_t take(int index, Run&& run) {
    int64_t taken = 0;
    for (int s = 0; s < count_; ++s) {
      Share& share = shares_[(index + s) % count_];
      while (share.next.load(std::memory_order_relaxed) < share.end) {
        const int64_t chunk = share.next.fetch_add(1, std::memory_order_relaxed);
        if (chunk < share.end) run(chunk), ++taken;
      }
    }
    return taken;
  }

 private:
  struct alignas(64) Share {
    std::atomic<int64_t> next;
    int64_t end;
  };
  // Where share s begins: shares differ by one chunk at most.
  int64_t first(int64_t s, int64_t chunks) const {
    const int64_t each = chunks / count_, more = chunks % count_;
    return s * each + std::min(s, more);
  }

  int count_;
  Share shares_[kMost];
};

}  // namespace baracuda
