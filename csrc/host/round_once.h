// Doubles on their way to a half, in operations that every level has in vectors.
#pragma once
#include <cstdint>
#include <cstring>

#include "core/half.h"

namespace baracuda {

// Has all behind the first 14 bits of a double, or of a vector of them, told by the last of these alone: enough for f16
// and bf16 to be rounded as from the number itself, and few enough for a float to hold them where bf16 is subnormal.
template <class Bits>
[[gnu::always_inline]] inline void rest_to_odd(Bits& u) {
  constexpr int64_t kRest = (int64_t{1} << 39) - 1;
  u = (u | ((u & kRest) + kRest)) & ~kRest;
}

// A float from which rounding again to a half gives what rounding x once would have given.
template <class C>
inline float round_once(C x) {
  return round_to_odd(x);
}
template <>
inline float round_once(double x) {
  int64_t u;
  std::memcpy(&u, &x, sizeof u);
  rest_to_odd(u);
  std::memcpy(&x, &u, sizeof u);
  return static_cast<float>(x);
}

}  // namespace baracuda
