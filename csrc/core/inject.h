// Failures that tests ask for (bc.testing.fail): after some more calls of a kind, one fails.
#pragma once
#include <atomic>
#include <cstdint>

#include "core/api.h"

namespace baracuda {

inline constexpr int64_t kInjectedLaunch = -2;  // the Failure::position of a launch that failed because it was to

enum class Injected : int32_t { Alloc, Launch, Count };
// What an error says of it.
inline constexpr const char* kInjectedText = "the failure that bc.testing.fail asked for";

// How many calls of a kind are left before the one that fails; negative when none is asked for.
BCU_API std::atomic<int64_t>& calls_left(Injected kind);
// Counts a call, and says whether it is the one to fail. What is asked for fails once, on one thread.
inline bool fails_now(Injected kind) {
  std::atomic<int64_t>& left = calls_left(kind);
  return left.load(std::memory_order_relaxed) >= 0 && left.fetch_sub(1, std::memory_order_relaxed) == 0;
}

}  // namespace baracuda
