// Whether a team of threads is worth it now. Threads that wait for each other spin: where another process has taken one
// of their cores, a region of microseconds ends when that one's slice does, milliseconds later, and so does each one
// after it. Then one thread is quicker than two. Times are in nanoseconds and given by the caller, so that tests can
// make them up.
#pragma once
#include <algorithm>
#include <cstdint>

namespace baracuda {

class Pace {
 public:
  static constexpr int64_t kSlack = 100'000;                         // what waking threads that sleep may take
  static constexpr int64_t kLeast = 2'000'000, kMost = 512'000'000;  // how long regions are serial after a stall
  static constexpr uint32_t kEvery = 16;                             // regions, of which one is timed in quiet times

  // Whether the region that begins is to be timed: now and then, and each one as long as stalls are not long ago.
  bool times_next() { return stays_ > kLeast || ++regions_ % kEvery == 0; }

  // A region took `wall` where one thread would have taken `serial`; it ended at `now`. Returns until when regions are
  // to be serial, or 0. Each stall doubles the time, and as long a time without halves it.
  int64_t finished(int64_t serial, int64_t wall, int64_t now) {
    if (wall - serial > kSlack + serial / 8) {
      const int64_t until = now + stays_;
      ++stalls_, good_ = 0, stays_ = std::min(2 * stays_, kMost);
      return until;
    }
    good_ += std::min(wall, kLeast);  // a region that the caller itself was held up in proves little
    if (good_ >= stays_) good_ = 0, stays_ = std::max(stays_ / 2, kLeast);
    return 0;
  }

  int64_t stalls() const { return stalls_; }

 private:
  int64_t stays_ = kLeast;  // how long regions will be serial after the next stall
  int64_t good_ = 0;        // time of timed regions since the last stall, or since `stays_` was halved
  int64_t stalls_ = 0;
  uint32_t regions_ = 0;
};

}  // namespace baracuda
