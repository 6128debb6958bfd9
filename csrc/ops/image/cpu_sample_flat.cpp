// Sampling f32 images of two axes: what some results of a row take is worked out once for all channels, in numbers of
// 32 bits, so that vectors of them gather their places. The sums are those of cpu_sample.cpp.
#include <cstdlib>

#include "core/parallel.h"
#include "host/level_gather.h"
#include "host/rows.h"
#include "ops/image/cpu.h"
#include "ops/image/sampling.h"
#include "ops/pool/lines.h"

namespace baracuda::image {
namespace {

constexpr int64_t kRun = 64;   // results of a row that are taken together
constexpr int64_t kSome = 16;  // which are computed in whole vectors, the last ones in vain
constexpr int64_t kMostSize = int64_t{1} << 22, kMostReach = int64_t{1} << 30;

// What results of a run take along an axis; those outside lie at place 0.
template <int kTaps>
struct Along {
  float weight[kTaps][kRun];
  int32_t offset[kTaps][kRun], inside[kTaps][kRun];
  int32_t whole;  // nothing is outside
};
template <int kTaps>
struct Reads {
  float weight[kTaps * kTaps][kRun];
  int32_t offset[kTaps * kTaps][kRun], inside[kTaps * kTaps][kRun];
};

template <int32_t kFilter, int32_t kPadding>
class Flat {
 public:
  Flat(const Sampling& s, const TensorView& x, const TensorView& grid, const TensorView& y)
      : side_{s.side[1], s.side[2]}, grid_(grid), x_(x), y_(y), channels_(x.shape[1]) {}

  void run(int64_t images) const {
    const int64_t height = y_.size[1], width = y_.size[2];
    parallel_for(images * height, row_grain(width * kTaps * kTaps * (channels_ + 4)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t w = 0; w < width; w += kRun) some(i / height, i % height, w, std::min(kRun, width - w));
    });
  }

 private:
  static constexpr bool kHeld = kFilter == kCubic && kPadding == kBorder;  // outside lies what is at the ends
  static constexpr int kTaps = kFilter == kNearest ? 1 : kFilter == kLinear ? 2 : 4;

  void some(int64_t n, int64_t h, int64_t first, int64_t count) const {
    const int64_t padded = (count + kSome - 1) / kSome * kSome;
    Along<kTaps> down, right;
    along(n, h, first, count, padded, 0, down), along(n, h, first, count, padded, 1, right);
    Reads<kTaps> reads;
    cross(padded, down, right, reads);
    alignas(64) float sums[kRun];
    for (int64_t c = 0; c < channels_; ++c) {
      const float* const from = reinterpret_cast<const float*>(x_.at(n, c, 0, 0, 0));
      down.whole&& right.whole ? fold<true>(from, reads, padded, sums) : fold<false>(from, reads, padded, sums);
      store<float>(y_.element, y_.at(n, c, 0, h, first), y_.stride[2], sums, count);
    }
  }
  void along(int64_t n, int64_t h, int64_t first, int64_t count, int64_t padded, int axis, Along<kTaps>& t) const {
    const Side side{side_[axis].size, kFilter, kPadding, side_[axis].align};
    const int64_t at = grid_.at(n, 0, h, first) + (1 - axis) * grid_.coordinate;
    alignas(64) float g[kRun], part[kRun];
    int32_t place[kRun];
    fetch(at, count, g);
    std::fill(g + count, g + padded, 0.0f);
#pragma GCC ivdep
    for (int64_t k = 0; k < padded; ++k) {
      const Aim<float> a = aim_at<float>(side, g[k]);
      part[k] = a.part, place[k] = static_cast<int32_t>(a.first);
    }
    const int32_t size = static_cast<int32_t>(side.size), step = static_cast<int32_t>(x_.stride[1 + axis]);
    int32_t apart = 0;
#pragma GCC unroll 4
    for (int tap = 0; tap < kTaps; ++tap) {
#pragma GCC ivdep
      for (int64_t k = 0; k < padded; ++k) {
        const int32_t to = place[k] + tap, held = std::min(std::max(to, 0), size - 1);
        t.inside[tap][k] = kHeld ? 1 : to == held;
        t.offset[tap][k] = held * step;
        apart |= to ^ held;
      }
#pragma GCC ivdep
      for (int64_t k = 0; k < padded; ++k) t.weight[tap][k] = weight_of_tap<float>(kFilter, part[k], tap);
    }
    t.whole = kHeld || apart == 0;
  }
  void fetch(int64_t at, int64_t n, float* to) const {
    if (grid_.element == Element::F32 && grid_.stride[2] == 2) {
      const float* const from = reinterpret_cast<const float*>(grid_.data) + at;
#pragma GCC ivdep
      for (int64_t k = 0; k < n; ++k) to[k] = from[2 * k];
      return;
    }
    load<float>(grid_.element, grid_.data + at * size_of(grid_.element), grid_.stride[2], to, n);
  }
  static void cross(int64_t n, const Along<kTaps>& down, const Along<kTaps>& right, Reads<kTaps>& to) {
    for (int i = 0; i < kTaps; ++i)
      for (int j = 0; j < kTaps; ++j) {
        const int t = i * kTaps + j;
#pragma GCC ivdep
        for (int64_t k = 0; k < n; ++k) {
          to.offset[t][k] = down.offset[i][k] + right.offset[j][k];
          to.weight[t][k] = down.weight[i][k] * right.weight[j][k];
          to.inside[t][k] = down.inside[i][k] & right.inside[j][k];
        }
      }
  }
  template <bool kWhole>
  static void fold(const float* from, const Reads<kTaps>& reads, int64_t n, float* to) {
    using L = Lanes<float>;
    for (int64_t k = 0; k < n; k += L::kWidth) {
      typename L::Vec sum = {};
#pragma GCC unroll 16
      for (int t = 0; t < kTaps * kTaps; ++t) {
        level::Words offset;
        std::memcpy(&offset, reads.offset[t] + k, sizeof offset);
        typename L::Vec v = level::gather(from, offset);
        if constexpr (!kWhole) {
          typename L::Mask inside;
          std::memcpy(&inside, reads.inside[t] + k, sizeof inside);
          v = inside != 0 ? v : typename L::Vec{};
        }
        sum += L::load(reads.weight[t] + k) * v;
      }
      std::memcpy(to + k, &sum, sizeof sum);
    }
  }
  const Side side_[2];
  const Grid grid_;
  const Planes x_, y_;
  const int64_t channels_;
};

// Whether places and their distances fit into 32 bits.
bool fits(const Planes& x) {
  int64_t reach = 0;
  for (int i = 1; i < kAxes; ++i) {
    if (x.size[i] < 1 || x.size[i] > kMostSize || std::abs(x.stride[i]) > kMostReach) return false;
    reach += (x.size[i] - 1) * std::abs(x.stride[i]);
  }
  return reach <= kMostReach;
}

template <int32_t kFilter>
void run_padded(const Sampling& s, const TensorView& x, const TensorView& grid, const TensorView& y) {
  const int32_t padding = s.side[2].padding;
  if (padding == kZeros) return Flat<kFilter, kZeros>(s, x, grid, y).run(x.shape[0]);
  if (padding == kBorder) return Flat<kFilter, kBorder>(s, x, grid, y).run(x.shape[0]);
  if constexpr (kFilter != kCubic) Flat<kFilter, kReflection>(s, x, grid, y).run(x.shape[0]);
}

}  // namespace

bool run_flat_sample(const Sampling& s, const TensorView& x, const TensorView& grid, const TensorView& y) {
  const int32_t filter = s.side[2].filter;
  if (s.axes != 2 || x.element != Element::F32 || !fits(Planes(x))) return false;
  if (filter == kCubic && s.side[2].padding == kReflection) return false;  // its taps are mirrored one by one
  if (filter == kNearest)
    run_padded<kNearest>(s, x, grid, y);
  else if (filter == kLinear)
    run_padded<kLinear>(s, x, grid, y);
  else
    run_padded<kCubic>(s, x, grid, y);
  return true;
}

}  // namespace baracuda::image
