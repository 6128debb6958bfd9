// Checks of csrc/backends/cpu/pace.h, on times that are made up. Exits 0 or says what went wrong.
#include "backends/cpu/pace.h"

#include "check.h"

using baracuda::Pace;

namespace {

constexpr int64_t kMicro = 1000, kMilli = 1'000'000;

int timed_of(Pace& pace, int regions) {
  int timed = 0;
  for (int i = 0; i < regions; ++i) timed += pace.times_next();
  return timed;
}

void quiet_times_are_looked_at_now_and_then() {
  Pace pace;
  CHECK(timed_of(pace, 160) == 160 / int{Pace::kEvery});
  for (int i = 0; i < 1000; ++i) CHECK(pace.finished(20 * kMicro, 12 * kMicro, i * kMilli) == 0);
  CHECK(timed_of(pace, 160) == 160 / int{Pace::kEvery} && pace.stalls() == 0);
}

// A team that is slower than one thread, but by no more than waking it takes; or by a small part of a long region.
void slow_is_no_stall() {
  Pace pace;
  CHECK(pace.finished(10 * kMicro, 10 * kMicro + Pace::kSlack, 0) == 0);
  CHECK(pace.finished(80 * kMilli, 90 * kMilli, 0) == 0);
  CHECK(pace.finished(80 * kMilli, 79 * kMilli, 0) == 0);
  CHECK(pace.stalls() == 0);
}

// Each stall doubles how long regions are serial, up to a limit; regions are all timed then.
void stalls_add_up() {
  Pace pace;
  int64_t now = 7, stays = Pace::kLeast;
  for (int i = 1; i <= 12; ++i) {
    CHECK(pace.finished(10 * kMicro, 4 * kMilli, now) == now + stays);
    CHECK(pace.stalls() == i && timed_of(pace, 50) == 50);
    stays = stays < Pace::kMost ? 2 * stays : stays;
    now += stays;
  }
  CHECK(stays == Pace::kMost);
}

// One stall among regions that go well is forgotten within a few times as long as it kept them serial.
void quiet_returns() {
  Pace pace;
  for (int i = 0; i < 3; ++i) pace.finished(10 * kMicro, 4 * kMilli, 0);
  int64_t good = 0;
  for (; timed_of(pace, 1) == 1 && good < Pace::kMost; good += kMilli / 2)
    CHECK(pace.finished(kMilli, kMilli / 2, 0) == 0);
  CHECK(good >= 28 * kMilli && good <= 29 * kMilli);  // 16 + 8 + 4
  CHECK(timed_of(pace, 160) == 160 / int{Pace::kEvery});
  CHECK(pace.finished(10 * kMicro, 4 * kMilli, 5) == 5 + Pace::kLeast);
}

// A busy machine: teams go well for some milliseconds, then one waits for a slice. Nearly all the time is serial.
void busy_machines_are_left_alone() {
  Pace pace;
  int64_t now = 0, until = 0, lost = 0;
  while (now < 20'000 * kMilli) {
    if (now < until) {
      now = until;
      continue;
    }
    for (int i = 0; i < 150; ++i) until = pace.finished(20 * kMicro, 20 * kMicro, now += 20 * kMicro);
    until = pace.finished(20 * kMicro, 4 * kMilli, now += 4 * kMilli);
    lost += 4 * kMilli;
    CHECK(until > now);
  }
  CHECK(lost < 300 * kMilli);
}

// The caller's own waits say nothing about the team: a long region counts for no more than a short while.
void long_regions_prove_little() {
  Pace pace;
  for (int i = 0; i < 5; ++i) pace.finished(10 * kMicro, 4 * kMilli, 0);
  CHECK(pace.finished(9000 * kMilli, 5000 * kMilli, 0) == 0);
  CHECK(pace.finished(10 * kMicro, 4 * kMilli, 0) == 32 * Pace::kLeast);
}

}  // namespace

int main() {
  quiet_times_are_looked_at_now_and_then();
  slow_is_no_stall();
  stalls_add_up();
  quiet_returns();
  busy_machines_are_left_alone();
  long_regions_prove_little();
}
