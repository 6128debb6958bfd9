// Transposing a strip of rows into a tile, by interleaving registers. The compiler turns the shuffles into unpack or
// permute instructions of the level it builds for.
#pragma once
#include <cstdint>
#include <utility>

#include "core/stream.h"

namespace baracuda::tile {

inline constexpr int kStripRows = 16;

#if defined(__AVX512BW__) && defined(__AVX512VL__)
template <int64_t kSize>
inline constexpr int kLanes = kSize == 16  ? 1
                              : kSize == 8 ? 8
                                           : 16;
#else
template <int64_t kSize>
inline constexpr int kLanes = 16 / kSize;
#endif

template <class U, int N, int64_t... I>
inline __attribute__((always_inline)) void interleave(const U& a, const U& b, U& low, U& high,
                                                      std::integer_sequence<int64_t, I...>) {
  low = __builtin_shufflevector(a, b, ((I & 1) * N + I / 2)...);
  high = __builtin_shufflevector(a, b, ((I & 1) * N + N / 2 + I / 2)...);
}

// dst[i][at + r] = rows[r][from + i] for N rows and N values of i.
template <class T, int N, bool kStream>
inline __attribute__((always_inline)) void transpose_block(const T* const* rows, int64_t from, T* const* dst,
                                                           int64_t at) {
  typedef T Vector __attribute__((vector_size(N * sizeof(T)), aligned(alignof(T)), may_alias));
  Vector a[N], b[N];
  for (int r = 0; r < N; ++r) a[r] = *reinterpret_cast<const Vector*>(rows[r] + from);
  for (int stage = 1; stage < N; stage *= 2) {
    for (int r = 0; r < N / 2; ++r)
      interleave<Vector, N>(a[r], a[r + N / 2], b[2 * r], b[2 * r + 1], std::make_integer_sequence<int64_t, N>());
    for (int r = 0; r < N; ++r) a[r] = b[r];
  }
  for (int r = 0; r < N; ++r) {
    if constexpr (kStream)
      stream_line(dst[r] + at, &a[r]);
    else
      *reinterpret_cast<Vector*>(dst[r] + at) = a[r];
  }
}

// dst[i][at + r] = rows[r][i] for i < n and r < height <= kStripRows; T is an unsigned integer. With `stream`, whole
// lines go past the caches where that is possible; the caller has checked that they are aligned.
template <class T>
void transpose_strip(const T* const* rows, int height, int64_t n, T* const* dst, int64_t at, bool stream) {
  constexpr int N = kLanes<sizeof(T)>;
  int64_t i = 0;
  int done = 0;
  if constexpr (N > 1) {
    done = height / N * N;
    if constexpr (N * sizeof(T) == kStreamLine) {
      for (; stream && i + N <= n; i += N)
        for (int r = 0; r < done; r += N) transpose_block<T, N, true>(rows + r, i, dst + i, at + r);
    }
    for (; i + N <= n; i += N)
      for (int r = 0; r < done; r += N) transpose_block<T, N, false>(rows + r, i, dst + i, at + r);
  }
  for (; i < n; ++i)
    for (int r = 0; r < done; ++r) dst[i][at + r] = rows[r][i];
  for (i = 0; i < n; ++i)
    for (int r = done; r < height; ++r) dst[i][at + r] = rows[r][i];
}

}  // namespace baracuda::tile
