// Gradients of pooling: every place gathers from the results whose windows hold it, in their order, along the channels
// where those are neighbours in memory, else along rows.
#include "ops/pool/cpu.h"
#include "ops/pool/walk.h"

namespace baracuda::pool {
namespace {

inline constexpr int64_t kPiece = 256;  // results of a row that are taken together

// The windows of some results along the last axis.
struct Widths {
  int64_t begin[kPiece], end[kPiece], step = 1;
  Widths(const Axis& a, int64_t first, int64_t n) {
    if (a.taps > 0 && a.dilation == 1) {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t from = (first + i) * a.stride - a.low;
        begin[i] = std::max<int64_t>(from, 0), end[i] = std::min(from + a.taps, a.in);
      }
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      const Window w = window_of(a, first + i);
      begin[i] = w.begin, end[i] = w.begin + w.count * w.step, step = w.step;
    }
  }
  bool holds(int64_t i, int64_t place) const {
    return place >= begin[i] && place < end[i] && (step == 1 || (place - begin[i]) % step == 0);
  }
};

template <class C>
class Backward {
 public:
  // Without indices, of means.
  Backward(const Pool& p, const TensorView& dy, const TensorView* where, const TensorView& dx)
      : pool_(p), dy_(dy), dx_(dx), indices_(where ? *where : dy), max_(where) {}

  void run_all(int64_t images, int64_t channels) const {
    const int64_t work = 2 * most_results(pool_);
    if (max_ && work <= 2 * kFew && whole())
      parallel_for(images * channels, row_grain(pool_.plane()), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) scatter(i / channels, i % channels);
      });
    else if (dx_.channels_last())
      each_column(images, channels, dx_.size, work, [&](const Spot& s, int64_t c, int64_t n) { across(s, c, n); });
    else
      each_row(images, channels, dx_.size, work, kLine, [&](const Spot& s, int64_t w, int64_t n) { row(s, w, n); });
  }

 private:
  // Calls f(d, h) for the rows of results whose windows hold a place of axes 0 and 1.
  template <class F>
  void each_result(int64_t d, int64_t h, const F& f) const {
    const Range ds = results_of(pool_.axis[0], d), hs = results_of(pool_.axis[1], h);
    for (int64_t i = ds.first; i <= ds.last; ++i) {
      if (!holds(window_of(pool_.axis[0], i), d)) continue;
      for (int64_t j = hs.first; j <= hs.last; ++j)
        if (holds(window_of(pool_.axis[1], j), h)) f(i, j);
    }
  }
  C area(int64_t d, int64_t h) const {
    if (pool_.divisor) return static_cast<C>(pool_.divisor);
    const Window a = window_of(pool_.axis[0], d), b = window_of(pool_.axis[1], h);
    return static_cast<C>(pool_.places(a)) * static_cast<C>(pool_.places(b));
  }
  C width(const Window& w) const { return pool_.divisor ? C(1) : static_cast<C>(pool_.places(w)); }
  int64_t place(const Spot& s, int64_t w) const { return (s.d * pool_.axis[1].in + s.h) * pool_.axis[2].in + w; }

  // Of so few results that sums need no blocks, planes of the type that is computed in are written to as they lie.
  static constexpr int64_t kFew = 1024;
  bool whole() const {
    const int64_t* size = dx_.size;
    for (const Axis& a : pool_.axis) {  // windows without places have an index, too
      if (a.taps == 0) continue;
      const bool low = a.low == 0 || (a.dilation == 1 && a.low < a.taps);
      if (!low || a.high > (a.taps - 1) * a.dilation) return false;
    }
    return dx_.element == element_of<C> && (size[2] == 1 || dx_.stride[2] == 1) &&
           (size[1] == 1 || dx_.stride[1] == size[2]) && (size[0] == 1 || dx_.stride[0] == size[1] * size[2]);
  }
  void scatter(int64_t n, int64_t c) const {
    C* const plane = reinterpret_cast<C*>(dx_.at(n, c, 0, 0, 0));
    std::fill_n(plane, pool_.plane(), C(0));
    C given[kPiece];
    int64_t where[kPiece];
    const LineReader<C> reader(dy_.element, dy_.stride[2], dy_.size[2]);
    const LineReader<int64_t> ids(Element::I64, indices_.stride[2], dy_.size[2]);
    each_place({0, dy_.size[0], 1, 0}, {0, dy_.size[1], 1, 0}, [&](int64_t d, int64_t h) {
      for (int64_t o = 0; o < dy_.size[2]; o += kPiece) {
        const int64_t count = std::min(kPiece, dy_.size[2] - o);
        const C* v = reader.get(dy_.at(n, c, d, h, o), count, given);
        const int64_t* id = ids.get(indices_.at(n, c, d, h, o), count, where);
        for (int64_t i = 0; i < count; ++i) plane[id[i]] += v[i];
      }
    });
  }

  // Channels [first, first + n) of one place.
  void across(const Spot& spot, int64_t first, int64_t n) const {
    alignas(64) C found[kLine], given[kLine];
    int64_t where[kLine];
    const LineReader<C> reader(dy_.element, dy_.channel, n);
    const LineReader<int64_t> ids(Element::I64, indices_.channel, n);
    const Range ws = results_of(pool_.axis[2], spot.w);
    const int64_t me = place(spot, spot.w);
    Folded<SumFold, C> folded(found, n, false);
    each_result(spot.d, spot.h, [&](int64_t d, int64_t h) {
      for (int64_t o = ws.first; o <= ws.last; ++o) {
        const Window w = window_of(pool_.axis[2], o);
        if (!holds(w, spot.w)) continue;
        const C* v = reader.get(dy_.at(spot.n, first, d, h, o), n, given);
        C* to = folded.slot();
        if (max_) {
          const int64_t* id = ids.get(indices_.at(spot.n, first, d, h, o), n, where);
          for (int64_t i = 0; i < n; ++i) to[i] = id[i] == me ? v[i] : C(0);
        } else {
          const C whole = area(d, h) * width(w);
          for (int64_t i = 0; i < n; ++i) to[i] = v[i] / whole;
        }
        folded.add(to);
      }
    });
    folded.finish();
    store<C>(dx_.element, dx_.at(spot.n, first, spot.d, spot.h, spot.w), dx_.channel, found, n);
  }

  // Places [first, first + n) of a row.
  void row(const Spot& spot, int64_t first, int64_t n) const {
    alignas(64) C found[kLine] = {}, part[kLine];
    const Axis& a = pool_.axis[2];
    const int64_t begin = results_of(a, first).first, end = results_of(a, first + n - 1).last + 1;
    for (int64_t o = begin; o < end; o += kPiece) {
      const int64_t count = std::min(kPiece, end - o);
      const Widths widths(a, o, count);
      std::fill_n(part, n, C(0));
      if (max_)
        add_maxima(spot, first, n, o, count, widths, part);
      else
        add_means(spot, first, n, o, count, widths, part);
      for (int64_t i = 0; i < n; ++i) found[i] += part[i];
    }
    store<C>(dx_.element, dx_.at(spot.n, spot.c, spot.d, spot.h, first), dx_.stride[2], found, n);
  }
  void add_maxima(const Spot& spot, int64_t first, int64_t n, int64_t o, int64_t count, const Widths& widths,
                  C* part) const {
    C given[kPiece];
    int64_t where[kPiece];
    const LineReader<C> reader(dy_.element, dy_.stride[2], count);
    const LineReader<int64_t> ids(Element::I64, indices_.stride[2], count);
    const int64_t start = place(spot, 0);
    each_result(spot.d, spot.h, [&](int64_t d, int64_t h) {
      const C* v = reader.get(dy_.at(spot.n, spot.c, d, h, o), count, given);
      const int64_t* id = ids.get(indices_.at(spot.n, spot.c, d, h, o), count, where);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t at = id[i] - start;
        if (at >= first && at < first + n && widths.holds(i, at)) part[at - first] += v[i];
      }
    });
  }
  void add_means(const Spot& spot, int64_t first, int64_t n, int64_t o, int64_t count, const Widths& widths,
                 C* part) const {
    C given[kPiece], sums[kPiece], width_of[kPiece];
    const LineReader<C> reader(dy_.element, dy_.stride[2], count);
    if (pool_.divisor)
      std::fill_n(width_of, count, C(1));
    else
      fill_widths(pool_, pool_.axis[2], o, count, width_of);
    Folded<SumFold, C> rows(sums, count, false);
    each_result(spot.d, spot.h, [&](int64_t d, int64_t h) {
      const C* v = reader.get(dy_.at(spot.n, spot.c, d, h, o), count, given);
      const C high = area(d, h);
      C* to = rows.slot();
      for (int64_t i = 0; i < count; ++i) to[i] = v[i] / (high * width_of[i]);
      rows.add(to);
    });
    rows.finish();
    for (int64_t i = 0; i < count; ++i) {
      const int64_t from = std::max(widths.begin[i], first), to = std::min(widths.end[i], first + n);
      for (int64_t at = from; at < to; ++at) part[at - first] += sums[i];
    }
  }

  const Pool& pool_;
  const Planes dy_, dx_, indices_;
  const bool max_;
};

}  // namespace

void run_max_backward(const Pool& pool, const TensorView& dy, const TensorView& indices, const TensorView& dx) {
  with_float_type(dx.element,
                  [&](auto c) { Backward<decltype(c)>(pool, dy, &indices, dx).run_all(dx.shape[0], dx.shape[1]); });
}
void run_mean_backward(const Pool& pool, const TensorView& dy, const TensorView& dx) {
  with_float_type(dx.element,
                  [&](auto c) { Backward<decltype(c)>(pool, dy, nullptr, dx).run_all(dx.shape[0], dx.shape[1]); });
}

}  // namespace baracuda::pool
