// Stores that go past the caches, for outputs that would not stay in them anyway: no line is read before it is written.
#pragma once
#include <cstdint>
#include <cstring>

#include "host/level.h"

namespace baracuda {

inline constexpr int64_t kStreamLine = 64;

// Below this many bytes an output may stay in the last-level cache, which is faster still.
inline constexpr int64_t kStreamBytes = int64_t{16} << 20;

// Bytes of a result that are computed before they are streamed. With more, reading and writing memory take turns.
inline constexpr int64_t kStreamPiece = 512;

// One aligned line from registers or memory.
inline void stream_line(void* dst, const void* src) { level::stream_line(dst, src); }

// A row of any alignment: whole lines are streamed. (A copy of no bytes would still be a call.)
inline void stream_bytes(char* dst, const char* src, int64_t n) {
  const int64_t head = -reinterpret_cast<intptr_t>(dst) & (kStreamLine - 1);
  if (head >= n) {
    std::memcpy(dst, src, n);
    return;
  }
  if (head > 0) std::memcpy(dst, src, head);
  int64_t i = head;
  for (; i + kStreamLine <= n; i += kStreamLine) stream_line(dst + i, src + i);
  if (i < n) std::memcpy(dst + i, src + i, n - i);
}

// Streamed stores are not ordered with others until this.
inline void stream_fence() { level::stream_fence(); }

}  // namespace baracuda
