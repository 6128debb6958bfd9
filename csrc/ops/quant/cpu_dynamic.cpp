// Quantization that finds its scales: the values that share one are read for their extremes, and again, from the caches
// where they fit, for their codes.
#include <algorithm>
#include <limits>

#include "core/parallel.h"
#include "host/row_writer.h"
#include "ops/quant/affine.h"
#include "ops/quant/cpu_scaled.h"
#include "ops/quant/scale_space.h"

namespace baracuda::quant {
namespace {

inline constexpr int64_t kTile = 4096, kPiece = 512, kLong = 1 << 16, kMostParts = 256;

// What codes go from and to.
struct Limits {
  float least, most;
  bool symmetric;
};

// Extremes as integers in the order of floats, of which compilers make vectors: NaN lies beyond the infinities.
struct Extremes {
  int32_t low = std::numeric_limits<int32_t>::max(), high = std::numeric_limits<int32_t>::min();

  static int32_t key(float x) {
    const int32_t bits = math::bit_cast<int32_t>(x);
    return bits ^ (bits >> 31 & 0x7fffffff);
  }
  static float value(int32_t key) { return math::bit_cast<float>(key ^ (key >> 31 & 0x7fffffff)); }
  void add(const float* x, int64_t n) {
    int32_t least = low, most = high;
    for (int64_t i = 0; i < n; ++i) {
      const int32_t k = key(x[i]);
      least = std::min(least, k), most = std::max(most, k);
    }
    low = least, high = most;
  }
  void add(const Extremes& e) { low = std::min(low, e.low), high = std::max(high, e.high); }
  Scaling scaling(const Limits& by) const {
    constexpr int32_t kInfinity = 0x7f800000;
    if (low > high) return scaling_of(0.0f, 0.0f, by.least, by.most, by.symmetric);
    const bool nan = high > kInfinity || low < key(-math::infinity<float>());
    const float bad = math::quiet_nan<float>();
    return scaling_of(nan ? bad : value(low), nan ? bad : value(high), by.least, by.most, by.symmetric);
  }
};

struct Dynamic {
  RowMap x, y, scale, zero;
  Limits by;
  Element code;

  explicit Dynamic(const Launch& launch) {
    using A = DynamicArgs;
    const auto attrs = attributes<DynamicAttrs>(launch);
    const ScaleSpace cut(launch[A::x], launch[A::scale]);
    const uint32_t shared = cut.shared();
    x = row_map(cut.values(launch[A::x]), shared), y = row_map(cut.values(launch[A::y]), shared);
    scale = row_map(cut.scales(launch[A::scale]), shared);
    if (launch[A::zero_point].present()) zero = row_map(cut.scales(launch[A::zero_point]), shared);
    by = {static_cast<float>(attrs.least), static_cast<float>(attrs.most), attrs.symmetric != 0};
    code = launch[A::y].element;
  }
  void put_scaling(int64_t row, const Scaling& s) const {
    put(scale, row, s.scale);
    if (zero.present()) put(zero, row, s.zero);
  }
};

template <class F>
void each_tile(int64_t begin, int64_t end, F&& f) {
  for (int64_t at = begin; at < end; at += kTile) f(at, std::min(kTile, end - at));
}

Extremes extremes_of(const Dynamic& d, int64_t row, int64_t begin, int64_t end) {
  alignas(64) float buffer[kTile];
  Extremes found;
  each_tile(begin, end, [&](int64_t at, int64_t n) { found.add(read(d.x, d.x.row(row), at, n, buffer), n); });
  return found;
}

// One rounding of quotients to codes; bytes are made of them while they are in registers.
template <class Code, class To>
void code_values(const float* __restrict__ x, To* __restrict__ to, int64_t n, const Scaling& s, const Limits& by) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(static_cast<int32_t>(Code::of(x[i], s, by)));
}
struct Whole {
  static float of(float x, const Scaling& s, const Limits& by) {
    return Coded::f(x, s.scale, s.zero, by.least, by.most);
  }
};
template <int kMantissa>
struct Eight {
  static float of(float x, const Scaling& s, const Limits&) { return CodedF8<kMantissa>::f(x, s.scale, 1.0f); }
};

template <class Code>
class Writer {
 public:
  explicit Writer(const Dynamic& d)
      : d_(d), bytes_(size_of(d.y.element) == 1 && d.y.inner.dense()), writer_(d.y, false) {
    streams_ = bytes_ && d.y.rows() * d.y.length() >= kStreamBytes;
  }
  ~Writer() {
    if (streams_) stream_fence();
  }
  Writer(const Writer&) = delete;

  // Rows before `last` are read next.
  void put(int64_t row, int64_t last, int64_t begin, int64_t end, const Scaling& s) const {
    alignas(64) float buffer[kTile];
    char* to = d_.y.row(row);
    each_tile(begin, end, [&](int64_t at, int64_t n) {
      const float* x = read(d_.x, d_.x.row(row), at, n, buffer);
      if (bytes_) return put_bytes(x, to + at, n, s, Ahead(d_.x, row + 1, last, at));
      writer_.put(to, at, n, [&](int64_t first, int64_t count, float* values) {
        for (int64_t i = 0; i < count; ++i) values[i] = Code::of(x[first + i], s, d_.by);
      });
    });
  }

 private:
  void put_bytes(const float* x, char* to, int64_t n, const Scaling& s, const Ahead& ahead) const {
    alignas(64) uint8_t codes[kPiece];
    for (int64_t i = 0; i < n; i += kPiece) {
      const int64_t count = std::min(kPiece, n - i);
      code_values<Code>(x + i, streams_ ? codes : reinterpret_cast<uint8_t*>(to + i), count, s, d_.by);
      if (streams_) stream_bytes(to + i, reinterpret_cast<const char*>(codes), count);
      ahead.fetch(i, count);
    }
  }

  const Dynamic& d_;
  bool bytes_, streams_;
  RowWriter<float> writer_;
};

// Long rows are shared by threads, in parts that follow from their length.
template <class Code>
void long_rows(const Dynamic& d) {
  const int64_t length = d.x.length(), part = std::max(kTile, (length / kMostParts + kTile) / kTile * kTile);
  const int64_t parts = (length + part - 1) / part;
  for (int64_t row = 0; row < d.x.rows(); ++row) {
    Extremes found[kMostParts], all;
    const auto each = [&](auto&& f) {
      parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) f(k, k * part, std::min(length, (k + 1) * part));
      });
    };
    each([&](int64_t k, int64_t begin, int64_t end) { found[k] = extremes_of(d, row, begin, end); });
    for (int64_t k = 0; k < parts; ++k) all.add(found[k]);
    const Scaling s = all.scaling(d.by);
    d.put_scaling(row, s);
    each([&](int64_t, int64_t begin, int64_t end) { Writer<Code>(d).put(row, 0, begin, end, s); });
  }
}

template <class Code>
void run(const Dynamic& d) {
  if (d.x.length() > kLong) return long_rows<Code>(d);
  parallel_for(d.scale.rows(), row_grain(d.x.length()), [&](int64_t begin, int64_t end) {
    const Writer<Code> writer(d);
    for (int64_t row = begin; row < end; ++row) {
      const Scaling s = extremes_of(d, row, 0, d.x.length()).scaling(d.by);
      d.put_scaling(row, s);
      writer.put(row, end, 0, d.x.length(), s);
    }
  });
}

}  // namespace

void run_dynamic_quantize(const Launch& launch) {
  const Dynamic d(launch);
  if (d.code == Element::F8E4M3) return run<Eight<3>>(d);
  if (d.code == Element::F8E5M2) return run<Eight<2>>(d);
  run<Whole>(d);
}

}  // namespace baracuda::quant
