// Short rows of contiguous values, a vector at a time: a call, or a loop of single values, would take longer.
#pragma once
#include <cstdint>
#include <cstring>

#include "host/lanes.h"

namespace baracuda::conv {

// to[i] = from[i], which must not overlap: kN at a time, the last ones once more where n is no multiple.
template <class C, int kN = Lanes<C>::kWidth>
[[gnu::always_inline]] inline void move_values(C* to, const C* from, int64_t n) {
  if constexpr (kN == 1) {
    if (n > 0) *to = *from;
  } else {
    if (n < kN) return move_values<C, kN / 2>(to, from, n);
    for (int64_t i = 0; i < n; i += kN) {
      const int64_t at = i + kN <= n ? i : n - kN;
      std::memcpy(to + at, from + at, kN * sizeof(C));
    }
  }
}

// to[i] = 0.
template <class C, int kN = Lanes<C>::kWidth>
[[gnu::always_inline]] inline void clear_values(C* to, int64_t n) {
  if constexpr (kN == 1) {
    if (n > 0) *to = C(0);
  } else {
    if (n < kN) return clear_values<C, kN / 2>(to, n);
    for (int64_t i = 0; i < n; i += kN) std::memset(to + (i + kN <= n ? i : n - kN), 0, kN * sizeof(C));
  }
}

}  // namespace baracuda::conv
