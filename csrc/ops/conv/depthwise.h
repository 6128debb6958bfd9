// Convolutions of a channel each whose channels are neighbours in memory: vectors go along these, straight from the
// tensor. Of some results next to each other a weight is read once. Results whose channels lie apart are turned.
#pragma once
#include <algorithm>

#include "core/parallel.h"
#include "host/lanes.h"
#include "host/rows.h"
#include "ops/conv/planes.h"

namespace baracuda::conv {

inline constexpr int64_t kMostAlong = 64;  // taps of such a convolution

template <class C>
class AlongChannels {
 public:
  // weights: [tap][channel]; bias: a value for each channel, or null.
  AlongChannels(const Planes& x, const Planes& y, int64_t channels, const C* weights, const C* bias)
      : x_(x), y_(y), channels_(channels), w_(weights), bias_(bias) {}

  static bool takes(const Planes& x, const Planes& y, int64_t channels, int64_t taps) {
    return channels >= L::kWidth && taps <= kMostAlong && x.channel == 1 && x.element == element_of<C> &&
           y.element == element_of<C>;
  }

  void run(const Pass& p, int64_t images) const {
    const int64_t depth = p.line[0].count, height = p.line[1].count, work = p.line[2].count * channels_ * p.taps();
    parallel_for(images * depth * height, row_grain(work), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) row(p, i / height / depth, i / height % depth, i % height);
    });
  }

 private:
  using L = Lanes<C>;
  using Vec = typename L::Vec;
  static constexpr int kResults = 4, kVectors = 2;  // results and vectors of channels that are computed together

  // Where the taps of some results begin, and how far that of the next one is; outside there are zeros.
  struct Reads {
    const C* at[kMostAlong];
    int64_t step[kMostAlong];
    int64_t taps;
  };

  // Results [begin, end) of a row, of channels [first, last), which go to `to`, `next` apart.
  struct Part {
    int64_t begin, end, first, last;
    C* to;
    int64_t next;
  };
  static constexpr int64_t kTurned = 64;  // results and channels that are turned together

  void row(const Pass& p, int64_t n, int64_t d, int64_t h) const {
    const Line& line = p.line[2];
    const int64_t next = line.step * y_.stride[2];
    const auto at = [&](int64_t c, int64_t j) {
      return reinterpret_cast<C*>(y_.at(n, c, p.line[0].first + d * p.line[0].step,
                                        p.line[1].first + h * p.line[1].step, line.first + j * line.step));
    };
    if (y_.channel == 1) return part(p, n, d, h, {0, line.count, 0, channels_, at(0, 0), next});
    alignas(64) C turned[kTurned * kTurned];
    for (int64_t c = 0; c < channels_; c += kTurned) {
      const int64_t first = std::max<int64_t>(0, std::min(c, channels_ - kTurned));
      const int64_t last = std::min(channels_, first + kTurned);
      for (int64_t j = 0; j < line.count; j += kTurned) {
        const int64_t count = std::min(kTurned, line.count - j);
        part(p, n, d, h, {j, j + count, first, last, turned, kTurned});
        for (int64_t k = c; k < last; ++k) {
          C* to = at(k, j);
          for (int64_t i = 0; i < count; ++i) to[i * next] = turned[i * kTurned + k - first];
        }
      }
    }
  }
  void part(const Pass& p, int64_t n, int64_t d, int64_t h, const Part& to) const {
    const Line& line = p.line[2];
    // Results whose taps are all inside the row.
    const int64_t reach = (line.taps - 1) * line.dilate, low = line.begin + std::min<int64_t>(reach, 0),
                  high = line.begin + std::max<int64_t>(reach, 0);
    const int64_t first = std::clamp<int64_t>(low >= 0 ? 0 : (-low + line.move - 1) / line.move, to.begin, to.end);
    const int64_t last =
        std::clamp<int64_t>(high >= x_.size[2] ? 0 : (x_.size[2] - 1 - high) / line.move + 1, first, to.end);
    for (int64_t j = to.begin; j < first; ++j) results(p, n, d, h, j, 1, to);
    if (last > first) results(p, n, d, h, first, last - first, to);
    for (int64_t j = last; j < to.end; ++j) results(p, n, d, h, j, 1, to);
  }
  // Results [j, j + count) of a row; more than one only where all taps are inside the row.
  void results(const Pass& p, int64_t n, int64_t d, int64_t h, int64_t j, int64_t count, const Part& part) const {
    const Line &depth = p.line[0], &height = p.line[1], &line = p.line[2];
    Reads r;
    r.taps = 0;
    for (int64_t td = 0; td < depth.taps; ++td)
      for (int64_t th = 0; th < height.taps; ++th)
        for (int64_t tw = 0; tw < line.taps; ++tw, ++r.taps) {
          const int64_t z = depth.begin + d * depth.move + td * depth.dilate,
                        y = height.begin + h * height.move + th * height.dilate,
                        w = line.begin + j * line.move + tw * line.dilate;
          const bool inside = z >= 0 && z < x_.size[0] && y >= 0 && y < x_.size[1] && w >= 0 && w < x_.size[2];
          r.at[r.taps] = inside ? reinterpret_cast<const C*>(x_.at(n, 0, z, y, w)) : nullptr;
          r.step[r.taps] = inside ? line.move * x_.stride[2] : 0;
        }
    C* to = part.to + (j - part.begin) * part.next;
    for (; count >= kResults; count -= kResults, to += kResults * part.next) some<kResults>(r, to, part);
    for (; count > 0; --count, to += part.next) some<1>(r, to, part);
  }
  // kN results; reads go on to what comes next.
  template <int kN>
  void some(Reads& r, C* to, const Part& part) const {
    int64_t c = part.first;
    for (; c + kVectors * L::kWidth <= part.last; c += kVectors * L::kWidth)
      block<kN, kVectors>(r, c, to + c - part.first, part.next);
    for (; c < part.last; c += L::kWidth) {  // the last ones once more, so that there is a whole vector
      const int64_t at = std::min(c, part.last - L::kWidth);
      block<kN, 1>(r, at, to + at - part.first, part.next);
    }
    for (int64_t t = 0; t < r.taps; ++t)
      if (r.at[t]) r.at[t] += kN * r.step[t];
  }
  // Of channels from c on.
  template <int kN, int kV>
  void block(const Reads& r, int64_t c, C* to, int64_t next) const {
    Vec sum[kN][kV] = {};
    for (int64_t t = 0; t < r.taps; ++t) {
      const C* const at = r.at[t];
      const int64_t step = r.step[t];
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) {
        const Vec w = L::load(w_ + t * channels_ + c + v * L::kWidth);
#pragma GCC unroll 4
        for (int k = 0; k < kN; ++k) sum[k][v] += w * (at ? L::load(at + k * step + c + v * L::kWidth) : Vec{});
      }
    }
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) {
#pragma GCC unroll 4
      for (int k = 0; k < kN; ++k) {
        if (bias_) sum[k][v] += L::load(bias_ + c + v * L::kWidth);
        std::memcpy(to + k * next + v * L::kWidth, &sum[k][v], sizeof(Vec));
      }
    }
  }

  const Planes &x_, &y_;
  const int64_t channels_;
  const C *w_, *bias_;
};

}  // namespace baracuda::conv
