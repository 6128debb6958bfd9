// Gradients of images that are added up in twice the precision, for some channels at a time.
#pragma once
#include <algorithm>

#include "ops/conv/planes.h"
#include "ops/pool/lines.h"

namespace baracuda::image {

struct WideF32 {
  double sum;
  void add(double v) { sum += v; }
  float value() const { return static_cast<float>(sum); }
};
struct WideF64 {
  double sum, lost;
  void add(double v) {
    const double s = sum + v, back = s - sum, rest = (sum - (s - back)) + (v - back), all = lost + rest;
    sum = s, lost = all - all == 0 ? all : 0;  // an infinite sum has lost nothing
  }
  double value() const { return sum + lost; }
};
template <class C>
using Wide = std::conditional_t<sizeof(C) == 8, WideF64, WideF32>;

inline constexpr int64_t kSummed = 16;  // channels, whose sums lie next to each other at each place

// Channels [first, first + m) of an image are their sums.
template <class C>
void write_sums(const conv::Planes& dx, int64_t image, int64_t first, int64_t m, const Wide<C>* sums) {
  C line[pool::kLine];
  for (int64_t row = 0; row < dx.size[0] * dx.size[1]; ++row) {
    for (int64_t w = 0; w < dx.size[2]; w += pool::kLine) {
      const int64_t n = std::min(pool::kLine, dx.size[2] - w);
      for (int64_t c = 0; c < m; ++c) {
        for (int64_t k = 0; k < n; ++k) line[k] = sums[(row * dx.size[2] + w + k) * m + c].value();
        char* const to = dx.at(image, first + c, row / dx.size[1], row % dx.size[1], w);
        store<C>(dx.element, to, dx.stride[2], line, n);
      }
    }
  }
}

}  // namespace baracuda::image
