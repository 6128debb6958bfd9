// Transposing a strip of rows into a tile, by interleaving registers. The compiler turns the shuffles into unpack or
// permute instructions of the level it builds for.
#pragma once
#include <cstdint>
#include <utility>

#include "host/stream.h"

namespace baracuda::tile {

template <int64_t kSize>
inline constexpr int kLanes = level::kVectorBytes < 64 || kSize == 16 ? 16 / kSize
                              : kSize == 8                            ? 8
                                                                      : 16;

// Blocks side by side that make up a line of the result, so that it is written whole.
template <int64_t kSize>
inline constexpr int kBlocks = level::kVectorBytes == 64 && kSize < 4 ? 4 / kSize : 1;

// Rows of a strip.
template <int64_t kSize>
inline constexpr int kStripRows = kBlocks<kSize> > 1 ? kBlocks<kSize> * kLanes<kSize> : 16;

// Interleaves a and b within each N of their lanes.
template <class U, int N, int64_t... I>
inline __attribute__((always_inline)) void interleave(const U& a, const U& b, U& low, U& high,
                                                      std::integer_sequence<int64_t, I...>) {
  constexpr int64_t kAll = sizeof...(I);
  low = __builtin_shufflevector(a, b, ((I & 1) * kAll + I / N * N + I % N / 2)...);
  high = __builtin_shufflevector(a, b, ((I & 1) * kAll + I / N * N + N / 2 + I % N / 2)...);
}

template <class T, int N>
struct LanesOf {
  typedef T type __attribute__((vector_size(N * sizeof(T)), aligned(alignof(T)), may_alias));
  typedef T in_register __attribute__((vector_size(N * sizeof(T))));
};
template <class T, int N>
using LaneVector = typename LanesOf<T, N>::type;

template <class T, int N, int64_t... I>
inline __attribute__((always_inline)) LaneVector<T, 2 * N> side_by_side(const LaneVector<T, N>& a,
                                                                        const LaneVector<T, N>& b,
                                                                        std::integer_sequence<int64_t, I...>) {
  return __builtin_shufflevector(a, b, I...);
}
// The N values at rows[0], rows[N], ... rows[(B - 1) N], each `from` further on.
template <class T, int N, int B>
inline __attribute__((always_inline)) LaneVector<T, N * B> load_blocks(const T* const* rows, int64_t from) {
  if constexpr (B == 1) {
    return *reinterpret_cast<const LaneVector<T, N>*>(rows[0] + from);
  } else {
    return side_by_side<T, N * B / 2>(load_blocks<T, N, B / 2>(rows, from),
                                      load_blocks<T, N, B / 2>(rows + N * B / 2, from),
                                      std::make_integer_sequence<int64_t, N * B>());
  }
}

// dst[i][at + r] = rows[r][from + i] for N B rows and N values of i.
template <class T, int N, int B, bool kStream>
inline __attribute__((always_inline)) void transpose_block(const T* const* rows, int64_t from, T* const* dst,
                                                           int64_t at) {
  using Vector = LaneVector<T, N * B>;
  typename LanesOf<T, N * B>::in_register a[N], b[N];
  for (int r = 0; r < N; ++r) a[r] = load_blocks<T, N, B>(rows + r, from);
  for (int stage = 1; stage < N; stage *= 2) {
    for (int r = 0; r < N / 2; ++r)
      interleave<typename LanesOf<T, N * B>::in_register, N>(a[r], a[r + N / 2], b[2 * r], b[2 * r + 1],
                                                             std::make_integer_sequence<int64_t, N * B>());
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
  constexpr int N = kLanes<sizeof(T)>, B = kBlocks<sizeof(T)>;
  int done = 0;
  if constexpr (N > 1) {
    const int whole = height / (N * B) * (N * B);
    int64_t i = 0;
    if constexpr (N * B * sizeof(T) == kStreamLine) {
      for (; stream && i + N <= n; i += N)
        for (int r = 0; r < whole; r += N * B) transpose_block<T, N, B, true>(rows + r, i, dst + i, at + r);
    }
    for (; i + N <= n; i += N)
      for (int r = 0; r < whole; r += N * B) transpose_block<T, N, B, false>(rows + r, i, dst + i, at + r);
    done = height / N * N;
    for (i = 0; i + N <= n; i += N)
      for (int r = whole; r < done; r += N) transpose_block<T, N, 1, false>(rows + r, i, dst + i, at + r);
    for (; i < n; ++i)
      for (int r = 0; r < done; ++r) dst[i][at + r] = rows[r][i];
  }
  for (int64_t i = 0; i < n; ++i)
    for (int r = done; r < height; ++r) dst[i][at + r] = rows[r][i];
}

}  // namespace baracuda::tile
