// Counts of elements and bytes that follow from sizes which somebody gave: products that 64 bits may not hold.
#pragma once
#include <algorithm>
#include <cstdint>

namespace baracuda {

// No size is larger, nor the product of a tensor's: even 16-byte elements take fewer than 2^63 bytes.
inline constexpr int64_t kMaxElements = int64_t{1} << 59;
// No block of memory is larger. Sums and multiples of a few such counts stay below 2^63.
inline constexpr int64_t kMaxBytes = int64_t{1} << 56;

// The product of sizes, none of them negative; false where it is kMaxElements or more. Sizes of 0 count as 1, so that
// products of some of the sizes, such as strides, are below it, too.
inline bool count_elements(const int64_t* sizes, int rank, int64_t& out) {
  out = 1;
  bool some = true;
  for (int i = 0; i < rank; ++i) {
    some &= sizes[i] != 0;
    if (__builtin_mul_overflow(out, std::max<int64_t>(sizes[i], 1), &out) || out >= kMaxElements) return false;
  }
  if (!some) out = 0;
  return true;
}
inline bool countable(const int64_t* sizes, int rank) {
  int64_t unused;
  return count_elements(sizes, rank, unused);
}

// Bytes up to a multiple of `line`, a power of two; false where they are more than a block has.
inline bool round_up(int64_t bytes, int64_t line, int64_t& out) {
  if (bytes < 0 || bytes > kMaxBytes) return false;
  out = (bytes + line - 1) & -line;
  return true;
}

}  // namespace baracuda
