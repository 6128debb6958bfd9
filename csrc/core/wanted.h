// What a kernel that answers IndexOutOfRange wants a whole number in the data to be. Failure::limit carries it above
// the limit itself, and so do faults of GPUs (simt/element.h).
#pragma once
#include <cstdint>

namespace baracuda {

enum class Wanted : int64_t {
  Index,   // 0 <= index < limit
  Length,  // 0 <= length < limit
  Slot,    // an index, or -1
  Place,   // where a sequence begins: no less than the one before, and below limit
  End,     // where the last sequence ends: limit
  Sum,     // of lengths: limit
  Number,  // told by GPUs: a scalar of the call, as its op wants it
  Count
};
inline constexpr int kWantedShift = 60;  // limits are sizes, and smaller; the largest int64 is one of plain indices

constexpr int64_t limit_of(Wanted wanted, int64_t limit) {
  return limit | static_cast<int64_t>(wanted) << kWantedShift;
}
constexpr Wanted wanted_of(int64_t limit) {
  const auto wanted = static_cast<Wanted>(limit >> kWantedShift);
  return limit >= 0 && wanted < Wanted::Count ? wanted : Wanted::Index;
}
constexpr int64_t plain_limit(int64_t limit) {
  return limit - (static_cast<int64_t>(wanted_of(limit)) << kWantedShift);
}

}  // namespace baracuda
