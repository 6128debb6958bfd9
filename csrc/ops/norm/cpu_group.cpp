// Group norms, forward: layer norms of rows of channels. A channel's weight and bias are one number each for a run of
// positions, which lie where they are broadcast with stride 0.
#include <numeric>

#include "host/row_writer.h"
#include "ops/norm/cpu_forward.h"

namespace baracuda::norm {
namespace {

inline constexpr int64_t kChannel = 8;  // positions from which on a loop of their own pays

// One row of the weights or biases.
template <class C>
class Parameter {
 public:
  Parameter(const RowMap& m, C offset) : m_(m), offset_(offset), rows_(m.present() ? m.rows() : 0) {}

  // Positions in a row that surely have the same value; 0: any number.
  int64_t run() const {
    if (!rows_) return 0;
    const int32_t last = m_.inner.rank - 1;
    return last < 0 ? m_.length() : m_.inner.strides[last] == 0 ? m_.inner.shape[last] : 1;
  }
  void seek(int64_t row) {
    if (rows_) row_ = m_.row(row % rows_);
  }
  C value(int64_t at) const {
    C found;
    load<C>(m_.element, row_ + m_.inner.offset(at) * size_of(m_.element), 1, &found, 1);
    return found + offset_;
  }
  const C* values(int64_t at, int64_t n) {
    if (!rows_) return nullptr;
    const C* found = read(m_, row_, at, n, buffer_);
    if (offset_ == 0) return found;
    scaled_sum(found, n);
    return buffer_;
  }
  bool present() const { return rows_ != 0; }

 private:
  void scaled_sum(const C* from, int64_t n) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) buffer_[i] = from[i] + offset_;
  }

  const RowMap& m_;
  const C offset_;
  const int64_t rows_;
  const char* row_ = nullptr;
  C buffer_[kRowTile<C>];
};

// The weight and bias of the channel that was asked for last: a channel is scaled in many pieces, each of which would
// look them up again.
template <class C>
class Channel {
 public:
  Channel(const Parameter<C>& weight, const Parameter<C>& bias, int64_t run)
      : weight_(weight), bias_(bias), run_(run) {}

  void seek_row() { index_ = -1; }
  // y of values [at, at + n) of a row.
  [[gnu::always_inline]] void scale(const C* v, Statistics<C> s, int64_t at, C* y, int64_t n) {
    for (int64_t k = 0; k < n;) {
      const int64_t index = (at + k) / run_, count = std::min((index + 1) * run_ - (at + k), n - k);
      if (index != index_) take(index);
      scale_one(v + k, s, y + k, count);
      k += count;
    }
  }

 private:
  void take(int64_t index) {
    index_ = index;
    if (weight_.present()) w_ = weight_.value(index * run_);
    if (bias_.present()) b_ = bias_.value(index * run_);
  }
  [[gnu::always_inline]] void scale_one(const C* v, Statistics<C> s, C* y, int64_t n) const {
    auto loop = [&](auto value) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) y[i] = value((v[i] - s.mean) * s.rstd);
    };
    const C w = w_, b = b_;
    if (weight_.present() && bias_.present())
      loop([=](C t) { return t * w + b; });
    else if (weight_.present())
      loop([=](C t) { return t * w; });
    else
      loop([=](C t) { return t + b; });
  }

  const Parameter<C>&weight_, &bias_;
  const int64_t run_;
  int64_t index_ = -1;
  C w_ = 1, b_ = 0;
};

}  // namespace

template <class C>
void forward_groups(const ForwardMaps& m, C eps, int64_t begin, int64_t end) {
  C in[kRowTile<C>], out[kRowTile<C>];
  Parameter<C> weight(m.weight, static_cast<C>(m.weight_offset)), bias(m.bias, C(0));
  const int64_t length = m.x.length();
  const int64_t of_weight = weight.run(), of_bias = bias.run();
  const int64_t run = of_weight && of_bias ? std::gcd(of_weight, of_bias) : of_weight + of_bias;
  const bool whole = length <= kRowTile<C>, channels = run >= kChannel;
  Channel<C> channel(weight, bias, run);
  const RowWriter<C> writer(m.y, m.y.data == m.x.data);
  for (int64_t r = begin; r < end; ++r) {
    const char* from = m.x.row(r);
    char* to = m.y.row(r);
    weight.seek(r), bias.seek(r), channel.seek_row();
    const C* v = whole ? read(m.x, from, 0, length, in) : nullptr;
    auto tile = [&](int64_t at, int64_t n) { return whole ? v : read(m.x, from, at, n, in); };
    Statistics<C> s = statistics<true>(length, eps, tile);
    if (squares_lost_by(s.rstd)) s = careful_statistics<true>(length, eps, tile, s);
    for (int64_t at = 0; at < length; at += kRowTile<C>) {
      const int64_t n = std::min(kRowTile<C>, length - at);
      const C* values = tile(at, n);
      if (s.scale != C(1)) scaled(values, s.scale, out, n), values = out;
      const C *w = channels ? nullptr : weight.values(at, n), *b = channels ? nullptr : bias.values(at, n);
      auto piece = [&](int64_t i, int64_t count, C* y) {
        if (!channels) return scale_tile<true>(values + i, w ? w + i : w, b ? b + i : b, s, y, count);
        channel.scale(values + i, s, at + i, y, count);
      };
      writer.put(to, at, n, piece, Ahead(m.x, r + 1, end, at));
    }
    if (m.mean.present()) put(m.mean, r, s.mean / s.scale);
    if (m.rstd.present()) put(m.rstd, r, s.rstd * s.scale);
  }
}

template void forward_groups(const ForwardMaps&, float, int64_t, int64_t);
template void forward_groups(const ForwardMaps&, double, int64_t, int64_t);

}  // namespace baracuda::norm
