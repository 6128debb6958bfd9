// The inner kernel: sums of kM channels over neighbouring places, kept in registers while the taps go by.
#pragma once
#include "host/lanes.h"
#include "ops/conv/frame.h"

namespace baracuda::conv {

inline constexpr int kTileChannels = level::kRegisters / 4, kAloneVectors = level::kRegisters == 32 ? 8 : 6;
inline constexpr int kTileVectors = 3;
inline constexpr int64_t kSumBlock = 256;  // products added in a row: keeps the error of long sums near sqrt(K)
static_assert(kBlockChannels % kTileChannels == 0);

// sums[m][place] = sum over taps of w[tap][m] * x[at[tap] + place] for kV vectors of places; of the last one only
// `last` are read, where kPart says so.
template <class C, int kM, int kV, bool kPart>
inline void tile(const C* w, const C* x, const int64_t* at, int64_t taps, int64_t last, C* sums) {
  using L = Lanes<C>;
  using Vec = typename L::Vec;
  for (int64_t first = 0; first == 0 || first < taps; first += kSumBlock) {
    Vec s[kM][kV] = {};
    const int64_t end = std::min(taps, first + kSumBlock);
    for (int64_t k = first; k < end; ++k) {
      const C* p = x + at[k];
      Vec b[kV];
#pragma GCC unroll 16
      for (int v = 0; v < kV; ++v)
        b[v] = kPart && v == kV - 1 ? L::load_first(p + v * L::kWidth, last) : L::load(p + v * L::kWidth);
#pragma GCC unroll 16
      for (int m = 0; m < kM; ++m) {
        const C a = w[k * kM + m];
#pragma GCC unroll 16
        for (int v = 0; v < kV; ++v) s[m][v] += a * b[v];
      }
    }
#pragma GCC unroll 16
    for (int m = 0; m < kM; ++m)
#pragma GCC unroll 16
      for (int v = 0; v < kV; ++v) {
        C* to = sums + (m * kV + v) * L::kWidth;
        if (first > 0) s[m][v] += L::load(to);
        std::memcpy(to, &s[m][v], sizeof s[m][v]);
      }
  }
}

}  // namespace baracuda::conv
