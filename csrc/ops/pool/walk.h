// How kernels go through images: spots of a tensor with three axes, side by side for threads.
#pragma once
#include <algorithm>

#include "core/parallel.h"
#include "host/rows.h"
#include "ops/pool/lines.h"
#include "ops/pool/problem.h"

namespace baracuda::pool {

struct Spot {
  int64_t n, c, d, h, w;
};

// The windows of an axis. Those of parts are found once where they are few: each takes four divisions.
class AxisWindows {
 public:
  explicit AxisWindows(const Axis& a) : axis_(a), known_(a.taps == 0 && a.out <= kLine) {
    for (int64_t o = 0; known_ && o < a.out; ++o) {
      const Window w = window_of(a, o);
      begin_[o] = static_cast<int32_t>(w.begin), count_[o] = static_cast<int32_t>(w.count);
    }
  }
  Window of(int64_t o) const {
    if (!known_) return window_of(axis_, o);
    return {begin_[o], count_[o], 1, count_[o]};
  }

 private:
  const Axis axis_;
  const bool known_;
  int32_t begin_[kLine], count_[kLine];
};

// Calls f(d, h) for the rows of a window.
template <class F>
inline void each_place(const Window& d, const Window& h, const F& f) {
  for (int64_t i = 0; i < d.count; ++i)
    for (int64_t j = 0; j < h.count; ++j) f(d.begin + i * d.step, h.begin + j * h.step);
}

// Calls f(spot, first, n) for pieces, at most `most` long, of the rows of all planes of a tensor. `work`: what an
// element takes.
template <class F>
inline void each_row(int64_t images, int64_t channels, const int64_t* size, int64_t work, int64_t most, const F& f) {
  if (size[2] == 0) return;
  parallel_for(images * channels * size[0] * size[1], row_grain(size[2] * work), [&](int64_t begin, int64_t end) {
    Spot s{0, 0, 0, 0, 0};
    int64_t rest = begin;
    s.h = rest % size[1], rest /= size[1];
    s.d = rest % size[0], rest /= size[0];
    s.c = rest % channels, s.n = rest / channels;
    for (int64_t at = begin; at < end; ++at) {
      for (int64_t first = 0; first < size[2]; first += most) f(s, first, std::min(most, size[2] - first));
      if (++s.h < size[1]) continue;
      s.h = 0;
      if (++s.d < size[0]) continue;
      s.d = 0;
      if (++s.c == channels) s.c = 0, ++s.n;
    }
  });
}
// Calls f(spot, first, n) for pieces of the channels at all places.
template <class F>
inline void each_column(int64_t images, int64_t channels, const int64_t* size, int64_t work, const F& f) {
  if (channels == 0) return;
  parallel_for(images * size[0] * size[1] * size[2], row_grain(channels * work), [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      Spot s{0, 0, 0, 0, 0};
      int64_t rest = at;
      s.w = rest % size[2], rest /= size[2];
      s.h = rest % size[1], rest /= size[1];
      s.d = rest % size[0], s.n = rest / size[0];
      for (int64_t first = 0; first < channels; first += kLine) f(s, first, std::min(kLine, channels - first));
    }
  });
}

// Places that a result is made of, at most; and results that a place is in.
inline int64_t most_taps(const Pool& pool) {
  int64_t n = 1;
  for (const Axis& a : pool.axis) n *= a.taps ? std::min(a.taps, a.in) : a.in / std::max<int64_t>(1, a.out) + 1;
  return n;
}
inline int64_t most_results(const Pool& pool) {
  int64_t n = 1;
  for (const Axis& a : pool.axis) n *= a.taps ? std::min(a.out, (a.taps - 1) / a.stride + 1) : a.out / a.in + 1;
  return std::max<int64_t>(1, n);
}

// What the windows of results [first, first + n) count along an axis.
template <class C>
inline void fill_widths(const Pool& pool, const Axis& a, int64_t first, int64_t n, C* to) {
  int64_t i = 0, inner = 0;  // windows that are inside, all alike, are [i, inner)
  if (a.taps > 0 && a.dilation == 1 && a.in >= a.taps) {
    i = std::clamp<int64_t>((a.low + a.stride - 1) / a.stride - first, 0, n);
    inner = std::clamp<int64_t>((a.in + a.low - a.taps) / a.stride + 1 - first, i, n);
    std::fill(to + i, to + inner, static_cast<C>(a.taps));
  }
  for (int64_t k = 0; k < n; ++k) {
    if (k == i) k = inner;
    if (k < n) to[k] = static_cast<C>(pool.places(window_of(a, first + k)));
  }
}

// Every `stride`th element of a row, from any of them on, as a line that may be read up to a multiple of kPad. Rows and
// the room for their phases are of so many elements.
inline constexpr int64_t kMostStride = 64, kRoom = kLine + kMostStride + 4 * kPad;
template <class C>
class Phases {
 public:
  Phases(const C* row, int64_t n, int64_t stride, C* to) : row_(row), split_(to), stride_(stride) {
    if (stride == 1) return;
    each_ = (n + stride - 1) / stride;
    if (stride == 2) {
      each_ = padded(each_);
#pragma GCC ivdep
      for (int64_t i = 0; i < each_; ++i) to[i] = row[2 * i], to[each_ + i] = row[2 * i + 1];
      return;
    }
    for (int64_t p = 0; p < stride; ++p)
      for (int64_t i = p, j = p * each_; i < n; i += stride) to[j++] = row[i];
  }
  const C* at(int64_t first) const {
    if (stride_ == 1) return row_ + first;
    if (stride_ == 2) return split_ + (first & 1) * each_ + (first >> 1);
    return split_ + first % stride_ * each_ + first / stride_;
  }

 private:
  const C* row_;
  C* split_;
  int64_t stride_, each_ = 0;
};

// Results of a row that are made from one strip of kLine places; 0 where it pays to look at each window alone.
inline int64_t strip_results(const Axis& a) {
  const int64_t reach = (a.taps - 1) * a.dilation + 1;
  if (a.taps == 0 || reach > kLine / 2 || a.stride > std::min(kMostStride, 4 * reach)) return 0;
  return (kLine - reach) / a.stride + 1;
}

// Places [begin, end) of a row that results [first, first + n) reach, which begin at `from` and span so many. Where all
// of them lie in the padding, there are none: at the end of a span in front of the row, and at the start of one behind.
struct Strip {
  int64_t from, span, begin, end;
  Strip(const Axis& a, int64_t first, int64_t n)
      : from(first * a.stride - a.low),
        span((n - 1) * a.stride + (a.taps - 1) * a.dilation + 1),
        begin(std::clamp<int64_t>(0, from, from + span)),
        end(std::clamp<int64_t>(a.in, begin, from + span)) {}

  template <class C>
  void pad(C* row, C with) const {
    std::fill(row, row + (begin - from), with), std::fill(row + (end - from), row + span, with);
  }
};

}  // namespace baracuda::pool
