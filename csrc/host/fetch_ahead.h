// Asks for memory before it is read, where processors do not see the order: rows that are read a few at a time, each a
// short stream of its own, make them wait for every row (pooling took three times as long).
#pragma once
#include <cstdint>

namespace baracuda {

inline constexpr int64_t kFetchAhead = 4096;  // bytes: some rows of an image, and a page that comes in time

// What lies that far behind a row of so many bytes; there need not be anything. (Always inlined: a function that does
// nothing else has no effect, says GCC, which then drops its calls.)
[[gnu::always_inline]] inline void fetch_ahead(const void* row, int64_t bytes) {
  const char* from = static_cast<const char*>(row) + kFetchAhead;
  for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(from + b);
}

}  // namespace baracuda
