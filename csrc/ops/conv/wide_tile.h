// The inner kernel where channels lie in lanes: sums of kV vectors of channels for kRows x kCols places, kept in
// registers while the taps go by.
#pragma once
#include "host/lanes.h"
#include "ops/conv/tile.h"

namespace baracuda::conv {

// As many places as leave registers for the weights and a value of the image.
inline constexpr int kWideVectors = 2, kWidePlaces = level::kRegisters == 32 ? 14 : 6;

// sums[place][lane] = bias[lane] + sum over taps of w[tap][lane] * x[at[tap] + place], where rows are `next` apart and
// places of a row kMove; the blocks of products are those of tile().
template <int kRows, int kCols, int kMove, int kV>
void wide_tile(const float* w, const float* x, int64_t next, const int64_t* at, int64_t taps, const float* bias,
               float* sums) {
  using L = Lanes<float>;
  using Vec = typename L::Vec;
  constexpr int kPlaces = kRows * kCols;
  for (int64_t first = 0; first == 0 || first < taps; first += kSumBlock) {
    Vec s[kPlaces][kV] = {};
    const int64_t end = std::min(taps, first + kSumBlock);
    for (int64_t k = first; k < end; ++k) {
      Vec b[kV];
#pragma GCC unroll 16
      for (int v = 0; v < kV; ++v) b[v] = L::load(w + (k * kV + v) * L::kWidth);
#pragma GCC unroll 2
      for (int r = 0; r < kRows; ++r) {
        const float* p = x + at[k] + r * next;
#pragma GCC unroll 16
        for (int c = 0; c < kCols; ++c) {
          const float a = p[c * kMove];
#pragma GCC unroll 16
          for (int v = 0; v < kV; ++v) s[r * kCols + c][v] += a * b[v];
        }
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kPlaces; ++i)
#pragma GCC unroll 16
      for (int v = 0; v < kV; ++v) {
        float* to = sums + (i * kV + v) * L::kWidth;
        if (first > 0) s[i][v] += L::load(to);
        if (bias && end == taps) s[i][v] += L::load(bias + v * L::kWidth);
        std::memcpy(to, &s[i][v], sizeof s[i][v]);
      }
  }
}

using WideTile = void (*)(const float* w, const float* x, int64_t next, const int64_t* at, int64_t taps,
                          const float* bias, float* sums);

// Tiles of kRows rows by their columns - 1.
template <int kRows, int kMove, int kV, int... kCols>
inline WideTile wide_tile_of(int64_t cols, std::integer_sequence<int, kCols...>) {
  static constexpr WideTile kTiles[] = {wide_tile<kRows, kCols + 1, kMove, kV>...};
  return kTiles[cols - 1];
}
template <int kMove, int kV>
inline WideTile wide_tile_of(int rows, int64_t cols) {
  return rows == 1 ? wide_tile_of<1, kMove, kV>(cols, std::make_integer_sequence<int, kWidePlaces>())
                   : wide_tile_of<2, kMove, kV>(cols, std::make_integer_sequence<int, kWidePlaces / 2>());
}
inline WideTile wide_tile_of(int rows, int64_t cols, int64_t move, int vectors) {
  if (vectors == 1) return move == 1 ? wide_tile_of<1, 1>(rows, cols) : wide_tile_of<2, 1>(rows, cols);
  return move == 1 ? wide_tile_of<1, kWideVectors>(rows, cols) : wide_tile_of<2, kWideVectors>(rows, cols);
}

}  // namespace baracuda::conv
