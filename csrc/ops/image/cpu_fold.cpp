// Windows added up: rows of results gather what each tap gives them.
#include "core/compute.h"
#include "ops/image/cpu.h"
#include "ops/pool/walk.h"

namespace baracuda::image {
namespace {

using pool::Axis;
using pool::kLine;
using pool::Spot;

// The window whose tap t lies at a place; -1: none.
int64_t window_at(const Axis& a, int64_t place, int64_t t) {
  const int64_t from = place + a.low - t * a.dilation;
  return from >= 0 && from % a.stride == 0 && from / a.stride < a.out ? from / a.stride : -1;
}

template <class C>
class Folding {
 public:
  Folding(const Fold& f, const TensorView& x, const TensorView& y)
      : fold_(f),
        x_(x),
        y_(y),
        channel_(x.shape[1] > 1 ? x.strides[1] : 0),
        window_(x.shape[2] > 1 ? x.strides[2] : 0) {}

  void run_all(int64_t images, int64_t channels) const {
    pool::each_row(images, channels, y_.size, fold_.taps(), kLine,
                   [&](const Spot& s, int64_t w, int64_t n) { row(s, w, n); });
  }

 private:
  static constexpr int64_t kTogether = 128;  // taps of a row that are added up without a block of their own

  // Results [first, first + n) of a row.
  void row(const Spot& s, int64_t first, int64_t n) const {
    alignas(64) C found[kLine];
    pool::Folded<pool::SumFold, C> sum(found, n, false);
    const Axis &a = fold_.axis[0], &b = fold_.axis[1], &c = fold_.axis[2];
    for (int64_t i = 0; i < a.taps; ++i) {
      const int64_t d = window_at(a, s.d, i);
      for (int64_t j = 0; d >= 0 && j < b.taps; ++j) {
        const int64_t h = window_at(b, s.h, j);
        if (h < 0) continue;
        const int64_t tap = (i * b.taps + j) * c.taps, row = (d * b.out + h) * c.out;
        for (int64_t from = 0; from < c.taps; from += kTogether) {
          C* const to = sum.slot();
          std::fill_n(to, n, C(0));
          for (int64_t t = from; t < std::min(from + kTogether, c.taps); ++t) add(s, tap, row, t, first, n, to);
          sum.add(to);
        }
      }
    }
    sum.finish();
    store<C>(y_.element, y_.at(s.n, s.c, s.d, s.h, first), y_.stride[2], found, n);
  }
  // What tap t of a row of windows gives results [first, first + n).
  void add(const Spot& s, int64_t tap, int64_t row, int64_t t, int64_t first, int64_t n, C* to) const {
    const Axis& c = fold_.axis[2];
    const int64_t at = t * c.dilation - c.low;  // of the first window's tap
    if (at >= first + n) return;
    const int64_t begin = at >= first ? 0 : (first - at + c.stride - 1) / c.stride;
    const int64_t end = std::min(c.out, (first + n - 1 - at) / c.stride + 1);
    if (begin >= end) return;
    C given[kLine];
    const int64_t count = end - begin, channel = s.c * fold_.taps() + tap + t;
    const pool::LineReader<C> reader(x_.element, window_, count);
    const char* const from =
        x_.as<char>() + (s.n * (x_.shape[0] > 1 ? x_.strides[0] : 0) + channel * channel_ + (row + begin) * window_) *
                            size_of(x_.element);
    const C* const v = reader.get(from, count, given);
    C* const out = to + (begin * c.stride + at - first);
    if (c.stride == 1) {
#pragma GCC ivdep
      for (int64_t k = 0; k < count; ++k) out[k] += v[k];
    } else {
      for (int64_t k = 0; k < count; ++k) out[k * c.stride] += v[k];
    }
  }

  const Fold& fold_;
  const TensorView& x_;
  const Planes y_;
  const int64_t channel_, window_;
};

}  // namespace

void run_fold(const Fold& f, const TensorView& x, const TensorView& y) {
  with_float_type(y.element, [&](auto c) { Folding<decltype(c)>(f, x, y).run_all(y.shape[0], y.shape[1]); });
}

}  // namespace baracuda::image
