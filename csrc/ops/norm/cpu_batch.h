// Norms of channels over a batch on the CPU, what forward and backward share: how tensors are walked, in rows that have
// statistics of their own (a channel, or that of one image), or across them where channels lie side by side.
#pragma once
#include <cmath>
#include <cstring>
#include <limits>

#include "host/strip_sums.h"
#include "ops/norm/kernels.h"

namespace baracuda::norm {

inline constexpr int64_t kSideTile = 128;  // channels that are taken at once where they lie side by side
inline constexpr int64_t kLeastRun = 32;   // values in a row from which on they are used where they lie
inline constexpr int64_t kLeastStrip = 16384;

// A tensor of (images, channels, ...), as rows and across them.
struct ChannelMap {
  RowMap rows, side;  // side: the positions of a group, and along each its channels
  int64_t group = 0;  // bytes from group to group

  ChannelMap(const TensorView& t, bool per_instance) : rows(row_map(t, ~(per_instance ? 3u : 2u))) {
    side.data = rows.data, side.element = t.element;
    for (int d = 0; d < t.rank; ++d)
      if (d != 1 && !(d == 0 && per_instance)) side.outer.push(t.shape[d], t.strides[d]);
    side.inner.push(t.shape[1], t.strides[1]);
    if (per_instance) group = t.strides[0] * size_of(t.element);
  }
  char* position(int64_t g, int64_t at) const { return side.row(at) + g * group; }
  // Whether values of C lie evenly at all positions of a group.
  template <class C>
  bool even() const {
    return side.direct<C>() && side.outer.rank <= 1;
  }
  int64_t step() const { return side.outer.rank ? side.outer.strides[0] : 0; }
};
// One value of each channel, or of each image's: rows of channels.
inline RowMap channel_map(const TensorView& t) { return t.present() ? row_map(t, 1u << (t.rank - 1)) : RowMap{}; }

// Values of channels [c, c + n); `none` where the call has no such tensor.
template <class C>
void get_channels(const RowMap& m, int64_t g, int64_t c, int64_t n, C none, C* to) {
  if (!m.present()) return void(std::fill_n(to, n, none));
  const C* from = read(m, m.row(g), c, n, to);
  if (from != to) std::copy_n(from, n, to);
}
template <class C>
void put_channels(const RowMap& m, int64_t g, int64_t c, int64_t n, const C* from) {
  if (!m.present()) return;
  C* to = target(m, m.row(g), c, const_cast<C*>(from));
  if (to != from) std::copy_n(from, n, to);
  write(m, m.row(g), c, n, from);
}

// Whether a product of two factors is as good as they are one after the other.
template <class C>
bool joins(C product, C factor) {
  return std::isfinite(product) && (std::fabs(product) >= std::numeric_limits<C>::min() || factor == C(0));
}

// How the work is cut: from sizes and x's strides alone.
struct ChannelCut {
  int64_t groups, channels, rows, length, wide, tiles, strips, per;
  bool across;

  ChannelCut(const ChannelMap& x, int64_t groups, int64_t channels)
      : groups(groups), channels(channels), rows(groups * channels), length(x.side.outer.count()) {
    across = rows > 0 && side_by_side(x.rows);
    wide = across ? std::min(channels, kSideTile) : 1;
    tiles = channels ? (channels + wide - 1) / wide : 0;
    const int64_t pieces = std::max<int64_t>(1, groups * tiles);
    const int64_t most = std::min(length / (across ? kStripBlock : 1), length * wide / kLeastStrip);
    const int64_t cut = std::max<int64_t>(1, std::min((kMaxStrips + pieces - 1) / pieces, most));
    per = (length + cut - 1) / cut;
    if (across) per = (per + kStripBlock - 1) / kStripBlock * kStripBlock;
    strips = per ? (length + per - 1) / per : 0;
  }
  int64_t begin(int64_t strip) const { return strip * per; }
  int64_t end(int64_t strip) const { return std::min(length, (strip + 1) * per); }
  int64_t count(int64_t strip) const { return end(strip) - begin(strip); }

  // Calls f(g, strip, first channel, channels) for every piece.
  template <class F>
  void pieces(F&& f) const {
    parallel_for(groups * strips * tiles, row_grain(per * wide), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t c = i % tiles * wide, rest = i / tiles;
        f(rest / strips, rest % strips, c, std::min(wide, channels - c));
      }
    });
  }
  // Calls f(first channel, channels) for all channels in tiles, each with so much work in all groups.
  template <class F>
  void channel_tiles(F&& f) const {
    parallel_for((channels + kSideTile - 1) / kSideTile, row_grain(4 * kSideTile * groups * (strips + 1)),
                 [&](int64_t first, int64_t last) {
                   for (int64_t c = first * kSideTile; c < std::min(channels, last * kSideTile); c += kSideTile)
                     f(c, std::min(kSideTile, channels - c));
                 });
  }
};

// Two sums of each strip of each row, in the workspace behind kRowNumbers of each row.
struct StripSums {
  double* data;
  int64_t channels, strips;
  StripSums(void* workspace, const ChannelCut& cut)
      : data(static_cast<double*>(workspace) + kRowNumbers * cut.rows), channels(cut.channels), strips(cut.strips) {}
  double* first(int64_t g, int64_t strip) const { return data + (g * strips + strip) * 2 * channels; }
  double* second(int64_t g, int64_t strip) const { return first(g, strip) + channels; }
};

// Walks rows of several tensors in tiles: of the compute type in runs that are long enough, where they lie.
template <class C>
class RowTiles {
 public:
  template <class... M>
  explicit RowTiles(const M&... maps) : length_(std::max({maps.length()...})), run_(length_) {
    (join(maps), ...);
    if (run_ < std::min(kLeastRun, length_)) run_ = 0;
    tile_ = run_ == 0 || run_ >= kRowTile<C> ? kRowTile<C> : kRowTile<C> / run_ * run_;
  }
  // Calls f(at, n) for tiles of at most kRowTile values.
  template <class F>
  void each(int64_t begin, int64_t end, F&& f) const {
    for (int64_t at = begin, n; at < end; at += n) {
      n = std::min(tile_, end - at);
      if (run_ > tile_) n = std::min(n, run_ - at % run_);
      f(at, n);
    }
  }
  // Calls f(from, n) for the parts of a tile that lie in one piece in every tensor.
  template <class F>
  void parts(int64_t at, int64_t n, F&& f) const {
    if (!run_) return f(at, n);
    for (int64_t from = at, left = std::min(n, run_ - at % run_); from < at + n;
         from += left, left = std::min(run_, at + n - from))
      f(from, left);
  }
  // A tile's values, to be indexed by positions in the row: where they lie, or converted.
  class Values {
   public:
    Values(const RowTiles& tiles, const RowMap& m, const char* row, int64_t at, int64_t n, C* buffer)
        : tiles_(tiles), m_(m), row_(reinterpret_cast<const C*>(row)), at_(at) {
      if (!tiles.run_) copy_ = read(m, row, at, n, buffer);
    }
    const C* operator[](int64_t from) const { return copy_ ? copy_ + (from - at_) : row_ + tiles_.offset(m_, from); }

   private:
    const RowTiles& tiles_;
    const RowMap& m_;
    const C* row_;
    const C* copy_ = nullptr;
    int64_t at_;
  };
  C* to(const RowMap& m, char* row, int64_t from, C* buffer) const {
    return run_ ? reinterpret_cast<C*>(row) + offset(m, from) : target(m, row, from, buffer);
  }
  void put(const RowMap& m, char* row, int64_t from, int64_t n, const C* values) const {
    if (!run_) write(m, row, from, n, values);
  }

 private:
  // Where a part lies from its row's start: runs may be short, and divisions take as long as a few of their vectors.
  int64_t offset(const RowMap& m, int64_t from) const {
    const Steps& s = m.inner;
    if (s.dense()) return from;
    if (s.rank != 2) return s.offset(from);
    const int64_t run = from / s.shape[1];
    return run * s.strides[0] + (from - run * s.shape[1]);
  }
  // The runs of all tensors end together, or their rows are one run.
  void join(const RowMap& m) {
    const Steps& s = m.inner;
    const bool steps = s.rank && s.strides[s.rank - 1] == 1;
    const int64_t own = m.element != element_of<C> ? 0 : s.dense() ? length_ : steps ? s.shape[s.rank - 1] : 0;
    if (own != length_) run_ = run_ == length_ || run_ == own ? own : 0;
  }
  int64_t length_, run_, tile_;
};

// lane_sums() of values that come in parts.
template <class C>
class LaneSums {
  using L = Lanes<C>;

 public:
  template <class Term, class... P>
  [[gnu::always_inline]] void add(int64_t n, Term term, const P*... p) {
    typename L::Vec acc[L::kVectors];  // which stay in registers
    std::memcpy(acc, lanes_, sizeof acc);
    int64_t i = 0;
    for (; i + L::kLanes <= n; i += L::kLanes) {
#pragma GCC unroll 16
      for (int k = 0; k < L::kVectors; ++k) acc[k] += term(L::load(p + i + k * L::kWidth)...);
    }
    last_lanes<C>(n - i, [&](int k, int64_t at, int64_t left) __attribute__((always_inline)) {
      if (left >= L::kWidth)
        acc[k] += term(L::load(p + i + at)...);
      else
        acc[k] += L::first(left) ? typename L::Vec(term(L::load_first(p + i + at, left)...)) : typename L::Vec{};
    });
    std::memcpy(lanes_, acc, sizeof acc);
  }
  C value() { return fold_sum<C>(lanes_); }

 private:
  typename L::Vec lanes_[L::kVectors] = {};
};

// A block of positions whose channels lie side by side: values of C, `step` from position to position.
template <class C>
struct SideBlock {
  const C* at;
  int64_t step;

  SideBlock(const ChannelMap& m, int64_t g, int64_t first, int64_t count, int64_t c, int64_t n, C* buffer)
      : at(buffer), step(n) {
    if (m.even<C>()) {
      at = reinterpret_cast<const C*>(m.position(g, first)) + c, step = m.step();
      return;
    }
    for (int64_t k = 0; k < count; ++k) {
      const C* from = read(m.side, m.position(g, first + k), c, n, buffer + k * n);
      if (from != buffer + k * n) std::copy_n(from, n, buffer + k * n);
    }
  }
};
// Where to write one.
template <class C>
class SideTarget {
 public:
  C* at;
  int64_t step;

  SideTarget(const ChannelMap& m, int64_t g, int64_t first, int64_t c, int64_t n, C* buffer) : at(buffer), step(n) {
    if (m.even<C>()) at = reinterpret_cast<C*>(m.position(g, first)) + c, step = m.step();
  }
  void put(const ChannelMap& m, int64_t g, int64_t first, int64_t count, int64_t c, int64_t n) const {
    if (m.even<C>()) return;
    for (int64_t k = 0; k < count; ++k) {
      char* row = m.position(g, first + k);
      C* to = target(m.side, row, c, at + k * n);
      if (to != at + k * n) std::copy_n(at + k * n, n, to);
      write(m.side, row, c, n, at + k * n);
    }
  }
};

// kCount vectors of neighbouring channels; kPart: one, of which `left` count.
template <class C, int kCount, bool kPart = false>
struct Columns {
  using L = Lanes<C>;
  using Vec = typename L::Vec;
  static constexpr int kVectors = kCount;
  int64_t left;

  Vec load(const C* p, int k) const {
    if constexpr (kPart)
      return L::load_first(p, left);
    else
      return L::load(p + k * L::kWidth);
  }
  void store(C* p, int k, Vec v) const {
    if constexpr (kPart)
      std::memcpy(p, &v, left * sizeof(C));
    else
      std::memcpy(p + k * L::kWidth, &v, sizeof v);
  }
};
// Calls f(columns, first) for n channels, for as many at once as leave their numbers in registers.
template <class C, class F>
[[gnu::always_inline]] inline void each_columns(int64_t n, F&& f) {
  constexpr int64_t kWidth = Lanes<C>::kWidth;
  int64_t i = 0;
  for (; i + 4 * kWidth <= n; i += 4 * kWidth) f(Columns<C, 4>{}, i);
  for (; i + kWidth <= n; i += kWidth) f(Columns<C, 1>{}, i);
  if (i < n) f(Columns<C, 1, true>{n - i}, i);
}

}  // namespace baracuda::norm
