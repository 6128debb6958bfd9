// Resizing: vectors along the channels where those are neighbours in memory; else along rows, of which those that a
// result takes of are added up first. Gradients go the same way from the results that take of a place.
#include "core/compute.h"
#include "host/lanes.h"
#include "host/stream.h"
#include "ops/image/blend.h"
#include "ops/image/cpu.h"
#include "ops/pool/walk.h"

namespace baracuda::image {
namespace {

using conv::Planes;
using pool::Spot;

template <class C>
void fill_tables(const Resize& r, Taps<C>* taps, void* workspace) {
  lay_out(r, taps, reinterpret_cast<uintptr_t>(workspace));
  for (int i = 0; i < kAxes; ++i) {
    const Taps<C>& t = taps[i];
    parallel_for(t.pitch, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) fill_result<C>(r.map[i], r.filter, static_cast<C>(r.a), t, o);
    });
    if (!r.back) continue;
    parallel_for(t.in, 1024, [&](int64_t begin, int64_t end) {
      for (int64_t place = begin; place < end; ++place) fill_place<C>(r.map[i], r.filter, t, place);
    });
  }
}

struct Part {
  int64_t begin, end;
};
// What place r of `to` takes of an axis of `from`, and how much.
template <class C, bool kBack>
struct Taken {
  const Taps<C>& t;
  Part part(int64_t r) const {
    if constexpr (kBack) return {t.begin[r], t.end[r]};
    return {first_inside(t.first[r], t.count[r], t.in), end_inside(t.first[r], t.count[r], t.in)};
  }
  // Calls f(place of `from`, weight); an end once for itself and once for each place behind it.
  template <class F>
  void each(int64_t r, const F& f) const {
    if constexpr (kBack) {
      for (int64_t s = t.begin[r]; s < t.end[r]; ++s) f(s, weight_of<C>(t, s, r));
    } else {
      const C* w = t.weight + r * t.by_result;
      for (int64_t k = 0; k < t.count[r]; ++k, w += t.by_tap) f(clamped(t.first[r] + k, 0, t.in - 1), *w);
    }
  }
};

template <class C, bool kBack>
class Resizing {
 public:
  Resizing(const Resize& r, const TensorView& from, const TensorView& to, const Taps<C>* taps)
      : taps_(taps), x_(from), y_(to), work_(1) {
    for (int i = 0; i < kAxes; ++i) {
      const int64_t most = most_taps(r.map[i], r.filter);
      work_ *= kBack ? most * r.map[i].out / r.map[i].in + 1 : most;
    }
  }

  void run_all(int64_t images, int64_t channels) const {
    if (y_.channels_last())
      columns(images, channels);
    else
      pool::each_row(images, channels, y_.size, work_, kLine,
                     [&](const Spot& s, int64_t w, int64_t n) { row(s, w, n); });
  }

 private:
  Taken<C, kBack> taken(int i) const { return {taps_[i]}; }

  // The channels of all places, a row of them after another.
  void columns(int64_t images, int64_t channels) const {
    const int64_t rows = y_.size[0] * y_.size[1], width = y_.size[2];
    parallel_for(images * rows, row_grain(width * channels * work_), [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const int64_t h = at % rows;
        Spot spot{at / rows, 0, h / y_.size[1], h % y_.size[1], 0};
        for (int64_t first = 0; first < channels; first += kLine)
          for (spot.w = 0; spot.w < width; ++spot.w) across(spot, first, std::min(kLine, channels - first));
      }
    });
  }
  // Channels [first, first + n) of one place.
  void across(const Spot& spot, int64_t first, int64_t n) const {
    alignas(64) C found[kLine];
    const LineReader<C> reader(x_.element, x_.channel, n);
    char* const to = y_.at(spot.n, first, spot.d, spot.h, spot.w);
    const bool plain = y_.element == element_of<C> && y_.channel == 1;
    Blend<C> blend(plain ? reinterpret_cast<C*>(to) : found, n);
    taken(0).each(spot.d, [&](int64_t d, C wd) {
      taken(1).each(spot.h, [&](int64_t h, C wh) {
        taken(2).each(spot.w, [&](int64_t w, C ww) {
          blend.add(reader.get(x_.at(spot.n, first, d, h, w), n, blend.slot()), wd * wh * ww);
        });
      });
    });
    blend.finish();
    if (!plain) store<C>(y_.element, to, y_.channel, found, n);
  }

  // Results [first, first + n) of a row.
  void row(const Spot& spot, int64_t first, int64_t n) const {
    alignas(64) C found[kLine], line[kLine];
    const Taken<C, kBack> t = taken(2);
    const int64_t begin = t.part(first).begin, end = t.part(first + n - 1).end;
    std::fill_n(found, n, C(0));
    for (int64_t from = begin; from < end; from += kLine) {
      const int64_t count = std::min(kLine, end - from);
      const LineReader<C> reader(x_.element, x_.stride[2], count);
      Blend<C> blend(line, count);
      taken(0).each(spot.d, [&](int64_t d, C wd) {
        taken(1).each(spot.h, [&](int64_t h, C wh) {
          blend.add(reader.get(x_.at(spot.n, spot.c, d, h, from), count, blend.slot()), wd * wh);
        });
      });
      blend.finish();
      const bool whole = begin + count == end;
      for (int64_t i = 0; i < n; ++i) {
        C sum = 0;
        t.each(first + i, [&](int64_t s, C w) {
          if (whole || (s >= from && s < from + count)) sum += w * line[s - from];
        });
        found[i] += sum;
      }
    }
    store<C>(y_.element, y_.at(spot.n, spot.c, spot.d, spot.h, first), y_.stride[2], found, n);
  }

  const Taps<C>* taps_;
  const Planes x_, y_;
  int64_t work_;
};

// Rows whose results take of kTaps places that are neighbours, so that two vectors hold what a vector of results takes.
// One place each is taken as it is.
template <class C, int kTaps>
class Stretched {
 public:
  using Weight = std::conditional_t<kTaps == 1, float, C>;
  Stretched(const TensorView& from, const TensorView& to, const Taps<Weight>* taps) : taps_(taps), x_(from), y_(to) {}

  static bool fits(const Taps<Weight>& t) {
    for (int64_t o = 0; o < t.out; o += kWidth) {
      const int64_t last = std::min(o + kWidth, t.out) - 1;
      if (t.first[last] - t.first[o] + kTaps > 2 * kWidth) return false;
    }
    for (int64_t o = 0; o < t.out; o += kPiece) {
      const int64_t last = std::min(o + kPiece, t.out) - 1;
      if (t.first[last] - t.first[o] + kTaps > kLine) return false;
    }
    return true;
  }

  void run_all(int64_t images, int64_t channels) const {
    const int64_t bytes = images * channels * y_.size[0] * y_.size[1] * y_.size[2] * static_cast<int64_t>(sizeof(C));
    const bool plain = y_.element == element_of<C> && (y_.stride[2] == 1 || y_.size[2] == 1);
    const bool streamed = plain && bytes >= kStreamBytes;
    const int64_t rows = y_.size[0] * y_.size[1];
    parallel_for(images * channels * rows, row_grain(y_.size[2]), [&](int64_t begin, int64_t end) {
      const int64_t plane = begin / rows, start = begin % rows;
      Spot spot{plane / channels, plane % channels, start / y_.size[1], start % y_.size[1], 0};
      for (int64_t at = begin; at < end; ++at) {
        for (int64_t first = 0; first < y_.size[2]; first += kPiece)
          row(spot, first, std::min(kPiece, y_.size[2] - first), streamed);
        if (++spot.h < y_.size[1]) continue;
        spot.h = 0;
        if (++spot.d < y_.size[0]) continue;
        spot.d = 0;
        if (++spot.c == channels) spot.c = 0, ++spot.n;
      }
      if (streamed) stream_fence();
    });
  }

 private:
  using L = Lanes<C>;
  using Vec = typename L::Vec;
  static constexpr int kWidth = L::kWidth;
  static constexpr int64_t kPiece = kLine / 2;
  static_assert(kPitch % kWidth == 0 && kPiece % kWidth == 0);

  static Vec pick(const C* from, const typename L::Mask& lanes) {
    const Vec a = L::load(from), b = L::load(from + kWidth);
#if defined(__clang__)
    Vec v;
    for (int i = 0; i < kWidth; ++i) v[i] = lanes[i] < kWidth ? a[lanes[i]] : b[lanes[i] - kWidth];
    return v;
#else
    return __builtin_shuffle(a, b, lanes);
#endif
  }
  static typename L::Mask lanes_of(const int32_t* first) {
    typename L::Mask m;
    if constexpr (sizeof(C) == 4) {
      std::memcpy(&m, first, sizeof m);
    } else {
      for (int i = 0; i < kWidth; ++i) m[i] = first[i];
    }
    return m - static_cast<typename L::Index>(first[0]);
  }

  // The places [from, from + count) of the rows that results take of, added up; the ends go on outside.
  void gather(const Spot& spot, int64_t from, int64_t count, C* line) const {
    const int64_t begin = std::clamp<int64_t>(from, 0, x_.size[2] - 1);
    const int64_t end = std::clamp<int64_t>(from + count, begin + 1, x_.size[2]), n = end - begin;
    C* const inside = line + (begin - from);
    const LineReader<C> reader(x_.element, x_.stride[2], n);
    if constexpr (kTaps == 1) {
      const C* row =
          reader.get(x_.at(spot.n, spot.c, taps_[0].first[spot.d], taps_[1].first[spot.h], begin), n, inside);
      if (row != inside) std::memcpy(inside, row, n * sizeof(C));
    } else {
      Blend<C> blend(inside, n);
      Taken<C, false>{taps_[0]}.each(spot.d, [&](int64_t d, C wd) {
        Taken<C, false>{taps_[1]}.each(spot.h, [&](int64_t h, C wh) {
          blend.add(reader.get(x_.at(spot.n, spot.c, d, h, begin), n, blend.slot()), wd * wh);
        });
      });
      blend.finish();
    }
    std::fill(line, line + (begin - from), line[begin - from]);
    std::fill(line + (end - from), line + count, line[end - 1 - from]);
  }

  void row(const Spot& spot, int64_t first, int64_t n, bool streamed) const {
    alignas(64) C line[kLine + 4 * kWidth], found[kPiece];
    const Taps<Weight>& t = taps_[2];
    const int64_t from = t.first[first], count = t.first[first + n - 1] + kTaps - from;
    gather(spot, from, count, line);
    std::fill_n(line + count, 2 * kWidth, C(0));
    char* const to = y_.at(spot.n, spot.c, spot.d, spot.h, first);
    const bool lines = sizeof(Vec) == kStreamLine && streamed && reinterpret_cast<uintptr_t>(to) % kStreamLine == 0;
    for (int64_t i = 0; i < n; i += kWidth) {
      const C* at = line + (t.first[first + i] - from);
      const auto lanes = lanes_of(t.first + first + i);
      Vec sum = pick(at, lanes);
      if constexpr (kTaps > 1) {
        const C* weight = t.weight + first + i;
        sum *= L::load(weight);
        for (int k = 1; k < kTaps; ++k) sum += L::load(weight + k * t.by_tap) * pick(at, lanes + k);
      }
      if (lines && i + kWidth <= n)
        stream_line(to + i * sizeof(C), &sum);
      else
        std::memcpy(found + i, &sum, sizeof sum);
    }
    const int64_t done = lines ? n / kWidth * kWidth : 0;
    if (streamed)
      stream_bytes(to + done * sizeof(C), reinterpret_cast<const char*>(found + done), (n - done) * sizeof(C));
    else
      store<C>(y_.element, to, y_.stride[2], found, n);
  }

  const Taps<Weight>* taps_;
  const Planes x_, y_;
};

template <class C, int kTaps, class Weight>
bool stretch(const TensorView& from, const TensorView& to, const Taps<Weight>* taps) {
  if (Planes(to).channels_last() || !Stretched<C, kTaps>::fits(taps[2])) return false;
  Stretched<C, kTaps>(from, to, taps).run_all(to.shape[0], to.shape[1]);
  return true;
}

// One place each.
template <class C>
class Nearest {
 public:
  Nearest(const TensorView& from, const TensorView& to, const Taps<float>* taps) : taps_(taps), x_(from), y_(to) {}

  void run_all(int64_t images, int64_t channels) const {
    if (y_.channels_last())
      pool::each_column(images, channels, y_.size, 1, [&](const Spot& s, int64_t c, int64_t n) { across(s, c, n); });
    else
      pool::each_row(images, channels, y_.size, 1, kLine, [&](const Spot& s, int64_t w, int64_t n) { row(s, w, n); });
  }

 private:
  const char* at(const Spot& s, int64_t c, int64_t w) const {
    return x_.at(s.n, c, taps_[0].first[s.d], taps_[1].first[s.h], w);
  }
  void across(const Spot& spot, int64_t first, int64_t n) const {
    alignas(64) C buffer[kLine];
    const LineReader<C> reader(x_.element, x_.channel, n);
    const C* line = reader.get(at(spot, first, taps_[2].first[spot.w]), n, buffer);
    store<C>(y_.element, y_.at(spot.n, first, spot.d, spot.h, spot.w), y_.channel, line, n);
  }
  void row(const Spot& spot, int64_t first, int64_t n) const {
    alignas(64) C found[kLine], buffer[kLine];
    const int32_t* place = taps_[2].first + first;
    for (int64_t i = 0; i < n;) {
      const int64_t from = place[i], count = std::min<int64_t>(kLine, place[n - 1] + 1 - from);
      const LineReader<C> reader(x_.element, x_.stride[2], count);
      const C* line = reader.get(at(spot, spot.c, from), count, buffer);
      for (; i < n && place[i] - from < count; ++i) found[i] = line[place[i] - from];
    }
    store<C>(y_.element, y_.at(spot.n, spot.c, spot.d, spot.h, first), y_.stride[2], found, n);
  }

  const Taps<float>* taps_;
  const Planes x_, y_;
};

}  // namespace

void run_nearest(const Resize& r, const TensorView& from, const TensorView& to, void* workspace) {
  if (to.numel() == 0) return;
  Taps<float> taps[kAxes];  // without weights
  fill_tables(r, taps, workspace);
  with_compute_type(from.element, [&](auto c) {
    using C = decltype(c);
    if (!stretch<C, 1>(from, to, taps)) Nearest<C>(from, to, taps).run_all(to.shape[0], to.shape[1]);
  });
}
void run_resize(const Resize& r, const TensorView& from, const TensorView& to, void* workspace) {
  if (to.numel() == 0) return;
  with_float_type(from.element, [&](auto c) {
    using C = decltype(c);
    Taps<C> taps[kAxes];
    fill_tables(r, taps, workspace);
    const int64_t images = to.shape[0], channels = to.shape[1];
    if (r.back) return Resizing<C, true>(r, from, to, taps).run_all(images, channels);
    if (r.filter.antialias || !(r.filter.kind == kLinear ? stretch<C, 2, C> : stretch<C, 4, C>)(from, to, taps))
      Resizing<C, false>(r, from, to, taps).run_all(images, channels);
  });
}

}  // namespace baracuda::image
