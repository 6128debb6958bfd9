// The quantizing epilogue of kernels that compute rows of values: where they would write a row, they write its codes,
// by a scale that is given or scales that are found for it, and the values leave no cache.
#pragma once
#include <algorithm>
#include <limits>

#include "host/row_writer.h"
#include "ops/quant/affine.h"
#include "ops/quant/epilogue.h"

namespace baracuda::quant {

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

// One rounding of quotients to codes.
struct Whole {
  static float of(float x, const Scaling& s, const Limits& by) {
    return Coded::f(x, s.scale, s.zero, by.least, by.most);
  }
};
template <int kMantissa>
struct Eight {
  static float of(float x, const Scaling& s, const Limits&) { return CodedF8<kMantissa>::f(x, s.scale, 1.0f); }
};

// Writes codes of values to rows; bytes are made of them while they are in registers.
template <class Code>
class Coder {
 public:
  Coder(const RowMap& y, const Limits& by)
      : by_(by), bytes_(size_of(y.element) == 1 && y.inner.dense()), writer_(y, false) {
    streams_ = bytes_ && y.rows() * y.length() >= kStreamBytes;
  }
  Coder(const Coder&) = delete;
  ~Coder() {
    if (streams_) stream_fence();
  }

  template <class... A>
  void put(char* row, int64_t at, const float* x, int64_t n, const Scaling& s, const A&... ahead) const {
    if (bytes_) return put_bytes(row + at, x, n, s, ahead...);
    writer_.put(row, at, n, [&](int64_t first, int64_t count, float* values) {
      for (int64_t i = 0; i < count; ++i) values[i] = Code::of(x[first + i], s, by_);
    });
  }

 private:
  static constexpr int64_t kPiece = 512;

  template <class To>
  void code(const float* __restrict__ x, To* __restrict__ to, int64_t n, const Scaling& s) const {
    const Limits by = by_;
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(static_cast<int32_t>(Code::of(x[i], s, by)));
  }
  template <class... A>
  void put_bytes(char* to, const float* x, int64_t n, const Scaling& s, const A&... ahead) const {
    alignas(kStreamLine) uint8_t codes[kPiece];
    for (int64_t i = 0; i < n; i += kPiece) {
      const int64_t count = std::min(kPiece, n - i);
      code(x + i, streams_ ? codes : reinterpret_cast<uint8_t*>(to + i), count, s);
      if (streams_) stream_bytes(to + i, reinterpret_cast<const char*>(codes), count);
      (ahead.fetch(i, count), ...);
    }
  }

  const Limits by_;
  bool bytes_, streams_;
  RowWriter<float> writer_;
};

// Where codes and scales of rows go.
struct CodedRows {
  RowMap y, scale;
  int64_t group = 0;             // values of a row that share a scale
  const float* given = nullptr;  // one scale for all; otherwise they are found
  Limits by{};
  Element code = Element::I8;

  // Of the arguments Args of a call whose codes are laid in rows along the last dimension.
  template <class Args>
  static CodedRows of(const Launch& launch, int64_t group) {
    CodedRows c;
    TensorView y = launch[Args::y];
    c.code = y.element;
    if (kF8Codes.has(y.element)) y.element = Element::U8;
    const TensorView& scale = launch[Args::scale];
    c.y = row_map(y, trailing_mask(y.rank, 1));
    if (scale.present()) c.scale = row_map(scale, trailing_mask(scale.rank, 1));
    if (launch[Args::given].present()) c.given = launch[Args::given].template as<float>();
    c.group = group > 0 ? group : c.y.length();
    const CodeLimits limits = limits_of(c.code);
    c.by = {limits.least, limits.most, true};
    return c;
  }
};

// Takes the place of ValueWriter: put() is given the tiles of a row, of at most 4096 values, one behind the other. Rows
// with groups that are longer than what is kept are asked for twice, first for their scales, then for their codes.
template <class Code>
class CodeWriter {
 public:
  explicit CodeWriter(const CodedRows& to) : to_(to), coder_(to.y, to.by), twice_(!to.given && to.group > kKept) {
    if (to.given) scaling_ = {*to.given, 0.0f};
  }

  int passes() const { return twice_ ? 2 : 1; }
  void begin(int64_t row) {
    row_ = row, codes_ = to_.y.row(row), extremes_ = {};
    if (!to_.given && to_.y.length() == 0) put_scales();
  }
  // As RowWriter::put().
  template <class Piece, class... A>
  void put(int pass, int64_t at, int64_t n, Piece&& piece, const A&... ahead) {
    for (int64_t i = 0; i < n;) {
      const int64_t in_group = (at + i) % to_.group, left = to_.group - in_group;
      int64_t count = n - i;
      if (!to_.given) count = in_group == 0 && count >= left ? count / left * left : std::min(left, count);
      const bool kept = !to_.given && !twice_;
      float* values = kept ? kept_ + in_group : kept_;
      piece(i, count, values);
      if (kept) {
        finish_groups(at + i, count, in_group);
      } else {
        pass_through(pass, at + i, count, in_group + count == to_.group);
      }
      (ahead.fetch(i, count), ...);
      i += count;
    }
  }

 private:
  static constexpr int64_t kKept = 16384;

  // Values of a group, the last ones of which have come, or of several.
  void finish_groups(int64_t at, int64_t count, int64_t in_group) {
    if ((in_group + count) % to_.group != 0) return;
    for (int64_t k = 0; k < in_group + count; k += to_.group) {
      Extremes found;
      found.add(kept_ + k, to_.group);
      const Scaling s = found.scaling(to_.by);
      put_scale((at - in_group + k) / to_.group, s.scale);
      coder_.put(codes_, at - in_group + k, kept_ + k, to_.group, s);
    }
  }
  // Values that are not kept, of one group or with one scale for all.
  void pass_through(int pass, int64_t at, int64_t count, bool last) {
    if (to_.given) return coder_.put(codes_, at, kept_, count, scaling_);
    const int64_t group = at / to_.group;
    if (pass > 0) return coder_.put(codes_, at, kept_, count, {*scale_at(group), 0.0f});
    extremes_.add(kept_, count);
    if (!last) return;
    put_scale(group, extremes_.scaling(to_.by).scale);
    extremes_ = {};
  }
  void put_scales() {
    for (int64_t g = 0; g < to_.scale.length(); ++g) put_scale(g, 0.0f);
  }
  float* scale_at(int64_t group) const {
    return reinterpret_cast<float*>(to_.scale.row(row_)) + to_.scale.inner.offset(group);
  }
  void put_scale(int64_t group, float v) const { *scale_at(group) = v; }

  const CodedRows& to_;
  const Coder<Code> coder_;
  const bool twice_;
  Scaling scaling_{};
  Extremes extremes_;
  int64_t row_ = 0;
  char* codes_ = nullptr;
  alignas(kStreamLine) float kept_[kKept];
};

// f<Code>() for the code that rows are written in.
template <class F>
void with_code(Element code, F&& f) {
  if (code == Element::F8E4M3) return f.template operator()<Eight<3>>();
  if (code == Element::F8E5M2) return f.template operator()<Eight<2>>();
  f.template operator()<Whole>();
}

}  // namespace baracuda::quant
