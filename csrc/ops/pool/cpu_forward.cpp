// Pooling forward: vectors along the channels where those are neighbours in memory; else along a row's results, from
// rows that are folded into one first; else, where windows are long or of many sizes, along each window.
#include "host/fetch_ahead.h"
#include "ops/pool/cpu.h"
#include "ops/pool/walk.h"

namespace baracuda::pool {
namespace {

// What windows without places have found is less than all that smaller integers hold.
inline void at_least(Element e, int64_t* found, int64_t n) {
  const int64_t least = least_of<int64_t>(e);
  for (int64_t i = 0; i < n; ++i) found[i] = std::max(found[i], least);
}

template <class F, class C>
class Forward {
 public:
  Forward(const Pool& p, const TensorView& from, const TensorView& to)
      : pool(p), x(from), y(to), high(p.axis[1]), wide(p.axis[2]) {
    if (kMean && y.size[2] <= kLine) fill_widths(pool, pool.axis[2], 0, y.size[2], widths_);
  }

  void run_all(int64_t images, int64_t channels) const {
    const int64_t work = most_taps(pool), results = strip_results(pool.axis[2]);
    if (is_one_line()) return whole_planes(images, channels);
    if (x.channels_last())
      each_column(images, channels, y.size, work, [&](const Spot& s, int64_t c, int64_t n) { across(s, c, n); });
    else if (results > 0)
      each_row(images, channels, y.size, work, results, [&](const Spot& s, int64_t w, int64_t n) { strip(s, w, n); });
    else
      each_row(images, channels, y.size, work, kLine, [&](const Spot& s, int64_t w, int64_t n) { each(s, w, n); });
  }

 private:
  static constexpr bool kMean = std::is_same_v<F, SumFold>;
  static constexpr int64_t kTogether = Lanes<C>::kWidth;

  // Whether each plane is folded to one value, and is one line that is read at once.
  bool is_one_line() const {
    for (const Axis& a : pool.axis)
      if (a.out != 1 || (a.taps != 0 && (a.taps != a.in || a.low != 0 || a.dilation != 1))) return false;
    const int64_t plane = pool.plane();
    const bool rows = x.stride[2] == 1 || x.size[2] == 1, high = x.stride[1] == x.size[2] || x.size[1] == 1;
    const bool dense = rows && high && (x.stride[0] == x.size[1] * x.size[2] || x.size[0] == 1);
    return dense && plane <= (x.element == element_of<C> ? kRowTile<C> : kLine) && !x.channels_last();
  }
  void whole_planes(int64_t images, int64_t channels) const {
    const int64_t plane = pool.plane(), pieces = (channels + kTogether - 1) / kTogether;
    const LineReader<C> reader(x.element, 1, plane);
    const Window d = window_of(pool.axis[0], 0), h = high.of(0);
    parallel_for(images * pieces, row_grain(kTogether * plane), [&](int64_t begin, int64_t end) {
      alignas(64) C found[kLine], slots[kTogether][kLine], width[kLine];
      if constexpr (kMean) std::fill_n(width, padded(kTogether), static_cast<C>(pool.places(wide.of(0))));
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / pieces, first = i % pieces * kTogether, n = std::min(kTogether, channels - first);
        fold_runs(
            n, [&](int64_t k) { return reader.get(x.at(image, first + k, 0, 0, 0), plane, slots[k]); },
            [&](int64_t) { return plane; }, found);
        put(y.at(image, first, 0, 0, 0), y.channel, found, n, d, h, width);
      }
    });
  }

  // What windows [first, first + n) of a row count; short rows have them at hand.
  const C* widths(int64_t first, int64_t n, C* buffer) const {
    if (y.size[2] <= kLine) return widths_ + first;
    if constexpr (kMean) fill_widths(pool, pool.axis[2], first, n, buffer);
    return buffer;
  }
  // Stores results, means by what their windows hold along the last axis.
  void put(char* at, int64_t stride, C* found, int64_t n, const Window& d, const Window& h, const C* width) const {
    if constexpr (kMean) {
      const C area = static_cast<C>(pool.places(d)) * static_cast<C>(pool.places(h));
      const C whole = static_cast<C>(pool.divisor);
      if (pool.divisor) {
        for (int64_t i = 0; i < padded(n); ++i) found[i] /= whole;
      } else {
        for (int64_t i = 0; i < padded(n); ++i) found[i] /= area * width[i];
      }
    }
    if constexpr (std::is_same_v<C, int64_t>) at_least(y.element, found, n);
    store<C>(y.element, at, stride, found, n);
  }

  // Channels [first, first + n) of one place.
  void across(const Spot& spot, int64_t first, int64_t n) const {
    alignas(64) C found[kLine];
    C width[kLine];
    const LineReader<C> reader(x.element, x.channel, n);
    const Window d = window_of(pool.axis[0], spot.d), h = high.of(spot.h);
    const Window w = wide.of(spot.w);
    Folded<F, C> folded(found, n, reader.direct());
    each_place(d, h, [&](int64_t at_d, int64_t at_h) {
      for (int64_t k = 0; k < w.count; ++k)
        folded.add(reader.get(x.at(spot.n, first, at_d, at_h, w.begin + k * w.step), n, folded.slot()));
    });
    folded.finish();
    if constexpr (kMean) std::fill_n(width, n, static_cast<C>(pool.places(w)));
    put(y.at(spot.n, first, spot.d, spot.h, spot.w), y.channel, found, n, d, h, width);
  }

  // Results [first, first + n) of a row.
  void strip(const Spot& spot, int64_t first, int64_t n) const {
    const Axis& a = pool.axis[2];
    const Strip s(a, first, n);
    alignas(64) C row[kRoom], phases[kRoom], found[kLine + kPad], buffer[kLine];
    std::fill_n(row + s.span, 2 * kPad, C(0));
    const Window d = window_of(pool.axis[0], spot.d), h = high.of(spot.h);
    s.pad(row, F::template neutral<C>());
    const int64_t places = s.end - s.begin;
    const LineReader<C> reader(x.element, x.stride[2], places);
    Folded<F, C> rows(row + (s.begin - s.from), places, reader.direct());
    const int64_t bytes = reader.direct() ? places * size_of(x.element) : 0;
    each_place(d, h, [&](int64_t at_d, int64_t at_h) {
      const char* from = x.at(spot.n, spot.c, at_d, at_h, s.begin);
      fetch_ahead(from, bytes);
      rows.add(reader.get(from, places, rows.slot()));
    });
    rows.finish();
    const Phases<C> split(row, s.span, a.stride, phases);
    Folded<F, C> taps(found, padded(n), true);
    for (int64_t k = 0; k < a.taps; ++k) taps.add(split.at(k * a.dilation));
    taps.finish();
    put(y.at(spot.n, spot.c, spot.d, spot.h, first), y.stride[2], found, n, d, h, widths(first, n, buffer));
  }

  // One window after another; of parts of rows that fit into a line, from rows that are folded into one.
  void each(const Spot& spot, int64_t first, int64_t n) const {
    alignas(64) C found[kLine], buffer[kLine];
    const Axis& a = pool.axis[2];
    const Window d = window_of(pool.axis[0], spot.d), h = high.of(spot.h);
    const bool parts = a.taps == 0 && a.out > 1 && a.in <= kLine;
    if (parts)
      fold_parts(spot, d, h, first, n, found);
    else
      for (int64_t i = 0; i < n; ++i) found[i] = window(spot, d, h, wide.of(first + i));
    put(y.at(spot.n, spot.c, spot.d, spot.h, first), y.stride[2], found, n, d, h, widths(first, n, buffer));
  }
  void fold_parts(const Spot& spot, const Window& d, const Window& h, int64_t first, int64_t n, C* found) const {
    alignas(64) C row[kLine];
    const Axis& a = pool.axis[2];
    const LineReader<C> reader(x.element, x.stride[2], a.in);
    Folded<F, C> rows(row, a.in, reader.direct());
    const int64_t bytes = reader.direct() ? a.in * size_of(x.element) : 0;
    each_place(d, h, [&](int64_t at_d, int64_t at_h) {
      const char* from = x.at(spot.n, spot.c, at_d, at_h, 0);
      fetch_ahead(from, bytes);
      rows.add(reader.get(from, a.in, rows.slot()));
    });
    rows.finish();
    for (int64_t i = 0; i < n; i += kTogether) {
      const int64_t some = std::min(kTogether, n - i);
      fold_runs(
          some, [&](int64_t k) { return row + wide.of(first + i + k).begin; },
          [&](int64_t k) { return wide.of(first + i + k).count; }, found + i);
    }
  }
  // As fold_run, of a few lines at once: sums of lanes are folded together.
  template <class Begin, class Count>
  static void fold_runs(int64_t n, const Begin& begin, const Count& count, C* to) {
    if constexpr (kMean) {
      typename Lanes<C>::Vec lanes[kTogether] = {};
      for (int64_t k = 0; k < n; ++k) lanes[k] = lane_sums<C>(count(k), [](auto b) { return b; }, begin(k));
      const typename Lanes<C>::Vec sums = fold_vectors<C>(lanes, Add());
      for (int64_t k = 0; k < n; ++k) to[k] = sums[k];
    } else {
      for (int64_t k = 0; k < n; ++k) to[k] = fold_run(begin(k), count(k));
    }
  }
  static C fold_run(const C* v, int64_t n) {
    if constexpr (kMean)
      return lane_sum<C>(n, [](auto b) { return b; }, v);
    else
      return lane_extreme<true, true>(v, n);
  }

  // What one window folds to; whole rows that follow one another are one run.
  C window(const Spot& spot, const Window& d, const Window& h, const Window& w) const {
    const bool joined = w.count == x.size[2] && w.step == 1 && h.step == 1 && x.stride[1] == w.count * x.stride[2];
    const Window rows = joined && h.count > 0 ? Window{h.begin, 1, 1, 1} : h;
    const int64_t run = joined ? w.count * h.count : w.count, stride = w.step * x.stride[2];
    const LineReader<C> reader(x.element, stride, run);
    const int64_t piece = reader.direct() ? kRowTile<C> : kLine;
    CompensatedSum<C> total;
    C most = F::template neutral<C>(), buffer[kLine];
    each_place(d, rows, [&](int64_t at_d, int64_t at_h) {
      const char* from = x.at(spot.n, spot.c, at_d, at_h, w.begin);
      for (int64_t i = 0; i < run; i += piece) {
        const int64_t count = std::min(piece, run - i);
        const C part = fold_run(reader.get(from + i * stride * size_of(x.element), count, buffer), count);
        if constexpr (kMean)
          total.add(part);
        else
          most = F::of(most, part);
      }
    });
    if constexpr (kMean) return total.value();
    return most;
  }

  const Pool& pool;
  const Planes x, y;
  const AxisWindows high, wide;
  alignas(64) C widths_[kLine + kPad];
};

// The maxima with where they are: the first of equals, and the last NaN.
template <class C>
class Indexed {
 public:
  Indexed(const Pool& p, const TensorView& from, const TensorView& to, const TensorView& where)
      : pool(p), x(from), y(to), indices(where), high(p.axis[1]), wide(p.axis[2]) {}

  void run_all(int64_t images, int64_t channels) const {
    const int64_t work = 2 * most_taps(pool), results = strip_results(pool.axis[2]);
    if (x.channels_last())
      each_column(images, channels, y.size, work, [&](const Spot& s, int64_t c, int64_t n) { across(s, c, n); });
    else if (results > 0)
      each_row(images, channels, y.size, work, results, [&](const Spot& s, int64_t w, int64_t n) { strip(s, w, n); });
    else
      each_row(images, channels, y.size, work, kLine, [&](const Spot& s, int64_t w, int64_t n) { each(s, w, n); });
  }

 private:
  using Index = typename Lanes<C>::Index;

  static void take(const C* line, Index number, C* found, Index* at, int64_t n) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const C b = line[i];
      const bool better = (b > found[i]) | (b != b);
      found[i] = better ? b : found[i];
      at[i] = better ? number : at[i];
    }
  }
  int64_t place(int64_t d, int64_t h, int64_t w) const { return (d * pool.axis[1].in + h) * pool.axis[2].in + w; }
  void put(const Spot& spot, int64_t c, int64_t w, bool last, C* found, const int64_t* where, int64_t n) const {
    const auto stride = [&](const Planes& t) { return last ? t.channel : t.stride[2]; };
    if constexpr (std::is_same_v<C, int64_t>) at_least(y.element, found, n);
    store<C>(y.element, y.at(spot.n, c, spot.d, spot.h, w), stride(y), found, n);
    store<int64_t>(Element::I64, indices.at(spot.n, c, spot.d, spot.h, w), stride(indices), where, n);
  }

  // Channels [first, first + n) of one place.
  void across(const Spot& spot, int64_t first, int64_t n) const {
    alignas(64) C found[kLine], buffer[kLine];
    alignas(64) Index at[kLine];
    int64_t where[kLine];
    const LineReader<C> reader(x.element, x.channel, n);
    const Window d = window_of(pool.axis[0], spot.d), h = high.of(spot.h);
    const Window w = wide.of(spot.w);
    std::fill_n(found, n, MaxFold::neutral<C>()), std::fill_n(at, n, Index(0));
    Index number = 0;
    each_place(d, h, [&](int64_t at_d, int64_t at_h) {
      for (int64_t k = 0; k < w.count; ++k)
        take(reader.get(x.at(spot.n, first, at_d, at_h, w.begin + k * w.step), n, buffer), number++, found, at, n);
    });
    if (number == 0) {
      std::fill_n(where, n, 0);  // of a window without places
    } else {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t row = at[i] / w.count, k = at[i] % w.count;
        where[i] = place(d.begin + row / h.count * d.step, h.begin + row % h.count * h.step, w.begin + k * w.step);
      }
    }
    put(spot, first, spot.w, true, found, where, n);
  }

  // Results [first, first + n) of a row.
  void strip(const Spot& spot, int64_t first, int64_t n) const {
    const Axis& a = pool.axis[2];
    const Strip s(a, first, n);
    alignas(64) C row[kRoom], phases[kRoom], found[kLine];
    std::fill_n(row + s.span, 2 * kPad, C(0));
    alignas(64) Index at[kLine];
    const Window d = window_of(pool.axis[0], spot.d), h = high.of(spot.h);
    s.pad(row, MaxFold::neutral<C>());
    std::fill_n(found, n, MaxFold::neutral<C>());
    for (int64_t i = 0; i < n; ++i) {
      const int64_t before = -(s.from + i * a.stride);
      at[i] = before > 0 ? static_cast<Index>(steps_over(a, before)) : Index(0);
    }
    const int64_t places = s.end - s.begin;
    C* const inside = row + (s.begin - s.from);
    const LineReader<C> reader(x.element, x.stride[2], places);
    Index number = 0;
    each_place(d, h, [&](int64_t at_d, int64_t at_h) {
      const C* v = reader.get(x.at(spot.n, spot.c, at_d, at_h, s.begin), places, inside);
      if (v != inside) std::memcpy(inside, v, places * sizeof(C));
      const Phases<C> split(row, s.span, a.stride, phases);
      for (int64_t k = 0; k < a.taps; ++k) take(split.at(k * a.dilation), number++, found, at, n);
    });
    int64_t where[kLine];
    find(s, d, h, number, at, n, where);
    put(spot, spot.c, first, false, found, where, n);
  }

  // Positions of the places with these numbers in their windows, of which there are `count`; 0 of those outside.
  void find(const Strip& s, const Window& d, const Window& h, int64_t count, const Index* at, int64_t n,
            int64_t* where) const {
    const Axis& a = pool.axis[2];
    const auto position = [&](int64_t number) {
      const int64_t line = number / a.taps;
      return place(d.begin + line / h.count * d.step, h.begin + line % h.count * h.step,
                   s.from + number % a.taps * a.dilation);
    };
    constexpr int64_t kTable = 64;
    const bool some = a.dilation == 1 && a.low < a.taps && (a.out - 1) * a.stride < a.in + a.low;  // in every window
    if (count > 0 && count <= kTable && some) {
      int64_t table[kTable];
      for (int64_t k = 0; k < count; ++k) table[k] = position(k);
      for (int64_t i = 0; i < n; ++i) where[i] = table[at[i]] + i * a.stride;
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      const int64_t w = s.from + i * a.stride + at[i] % a.taps * a.dilation;
      where[i] = count == 0 || w < 0 || w >= a.in ? 0 : position(at[i]) + i * a.stride;
    }
  }

  // One window after another.
  void each(const Spot& spot, int64_t first, int64_t n) const {
    alignas(64) C found[kLine], buffer[kLine];
    int64_t where[kLine];
    const Window d = window_of(pool.axis[0], spot.d), h = high.of(spot.h);
    for (int64_t i = 0; i < n; ++i) {
      const Window w = wide.of(first + i);
      const int64_t stride = w.step * x.stride[2];
      found[i] = MaxFold::neutral<C>();
      where[i] = d.count * h.count * w.count > 0 ? place(d.begin, h.begin, w.begin) : 0;
      each_place(d, h, [&](int64_t at_d, int64_t at_h) {
        const char* from = x.at(spot.n, spot.c, at_d, at_h, w.begin);
        for (int64_t begin = 0; begin < w.count; begin += kLine) {
          const int64_t count = std::min(kLine, w.count - begin);
          const C* v =
              LineReader<C>(x.element, stride, count).get(from + begin * stride * size_of(x.element), count, buffer);
          for (int64_t k = 0; k < count; ++k) {
            if (v[k] > found[i] || v[k] != v[k])
              found[i] = v[k], where[i] = place(at_d, at_h, w.begin + (begin + k) * w.step);
          }
        }
      });
    }
    put(spot, spot.c, first, false, found, where, n);
  }

  const Pool& pool;
  const Planes x, y, indices;
  const AxisWindows high, wide;
};

}  // namespace

void run_max(const Pool& pool, const TensorView& x, const TensorView& y, const TensorView& indices) {
  with_compute_type(x.element, [&](auto c) {
    using C = decltype(c);
    if (indices.present())
      Indexed<C>(pool, x, y, indices).run_all(x.shape[0], x.shape[1]);
    else
      Forward<MaxFold, C>(pool, x, y).run_all(x.shape[0], x.shape[1]);
  });
}
void run_mean(const Pool& pool, const TensorView& x, const TensorView& y) {
  with_float_type(x.element,
                  [&](auto c) { Forward<SumFold, decltype(c)>(pool, x, y).run_all(x.shape[0], x.shape[1]); });
}

}  // namespace baracuda::pool
