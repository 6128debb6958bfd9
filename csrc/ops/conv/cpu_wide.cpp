// A pass whose channels lie in the lanes of vectors (in_lanes). Images are read where they lie, or from frames of
// zeros where taps reach beyond them.
#include "core/compute.h"
#include "host/tile_transpose.h"
#include "ops/conv/cpu.h"
#include "ops/conv/framer.h"
#include "ops/conv/wide_tile.h"

namespace baracuda::conv {
namespace {

constexpr int64_t kItemWork = int64_t{4} << 20;       // multiply-adds that are worth a thread's while
constexpr int64_t kNearWeights = int64_t{512} << 10;  // bytes that stay near a core while places go by
constexpr int kWidth = Lanes<float>::kWidth, kBlock = kWideVectors * kWidth;
constexpr int kSide = 16;  // places of a tile, padded to what is transposed at a time

class Wide {
 public:
  Wide(const Conv& c, Makes makes, const TensorView& read, const TensorView& weight, const TensorView& bias,
       const TensorView& made, void* workspace, const Epilogue<float>* epilogue)
      : c_(c),
        makes_(makes),
        x_(read),
        w_(weight),
        y_(made),
        frame_(c, makes, true),
        room_(room_of_pass(c, makes, sizeof(float))),
        reads_(read_channels(c, makes)),
        made_(made_channels(c, makes)),
        lanes_((made_ + kWidth - 1) / kWidth * kWidth),
        store_(storer<float>(y_.element)),
        epilogue_(epilogue) {
    char* at = static_cast<char*>(workspace);
    auto take = [&](int64_t bytes) { return at += bytes, at - bytes; };
    packed_ = reinterpret_cast<float*>(take(room_.weights));
    offsets_ = reinterpret_cast<int64_t*>(take(room_.offsets));
    bias_ = reinterpret_cast<float*>(take(room_.bias));
    frames_ = reinterpret_cast<float*>(at);
    if (!bias.present()) bias_ = nullptr;
    for (int64_t g = 0; bias_ && g < c_.groups; ++g) {
      float* to = bias_ + g * lanes_;
      std::fill(to + made_, to + lanes_, 0.0f);
      load<float>(bias.element, bias.as<char>() + g * made_ * bias.strides[0] * size_of(bias.element), bias.strides[0],
                  to, made_);
    }
  }

  void run() {
    const int64_t passes = passes_of(c_, makes_);
    const auto all = [&](int64_t first, int64_t images, const Lies& lies) {
      for (int64_t i = 0; i < passes; ++i) {
        const Pass p = pass_of(c_, makes_, i);
        if (p.empty()) continue;
        if (passes > 1 || first == 0) pack(p);
        compute(p, first, images, lies);
      }
    };
    if (lies_whole())
      return all(0, c_.n,
                 {reinterpret_cast<const float*>(x_.data), x_.outer, x_.channel, {x_.stride[0], x_.stride[1]}, {}});
    const Framer<float> framer(x_, frame_);
    const int64_t channels = c_.groups * reads_, size = frame_.size();
    Lies lies{frames_, channels * size, size, {frame_.slab(), frame_.pitch()}, {}};
    for (int i = 0; i < kAxes; ++i) lies.first[i] = frame_.axis[i].first;
    framed_images(c_, framer, channels, size, room_, frames_,
                  [&](int64_t first, int64_t images) { all(first, images, lies); });
  }

 private:
  struct Lies {  // what is read
    const float* data;
    int64_t image, channel, stride[2];
    int64_t first[kAxes];  // the position at `data`
  };
  struct Item {  // what a thread computes at a time: rows of a slice, for blocks of channels
    const float* x;
    int64_t n, g, d, row, rows, block, blocks;
  };
  struct Spot {  // where a tile's results lie
    int64_t n, channel, channels, d, h, w;
  };
  struct Shape {  // of a pass, as tiles see it
    int64_t width, height, depth, move, next, slab;
    int64_t rows;    // that a tile has
    int64_t pieces;  // of a row
  };

  // Whether all taps are inside x, in rows of f32.
  bool lies_whole() const {
    if (x_.element != Element::F32 || (x_.stride[2] != 1 && x_.size[2] > 1)) return false;
    for (int i = 0; i < kAxes; ++i) {
      const FrameAxis& a = frame_.axis[i];
      if (a.first < 0 || a.first + a.places > x_.size[i]) return false;
    }
    return true;
  }

  // The weights of a pass as [group][block of lanes][read channel and tap][lane].
  void pack(const Pass& p) const {
    const int64_t blocks = blocks_of_group();
    parallel_for(c_.groups * blocks, row_grain(reads_ * p.taps() * kBlock), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) pack_block(p, i / blocks, i % blocks);
    });
  }
  void pack_block(const Pass& p, int64_t g, int64_t block) const {
    const int64_t taps = p.taps(), made = block * kBlock, wide = std::min<int64_t>(kBlock, lanes_ - made);
    const int64_t there = std::min<int64_t>(wide, made_ - made);
    const bool result = makes_ == Makes::Result;
    const int64_t along = result ? w_.outer : w_.channel;
    float* to = packed_of(g, block, taps);
    if (there < wide) std::fill_n(to, reads_ * taps * wide, 0.0f);
    if (result && w_.element == Element::F32 && lies_in_rows()) {
      const float* from = reinterpret_cast<const float*>(w_.at(g * c_.outs + made, 0, 0, 0, 0));
      return turn(from, along, there, reads_ * taps, to, wide);
    }
    const LoadFn<float> load = loader<float>(w_.element);
    for (int64_t r = 0; r < reads_; ++r)
      for (int64_t d = 0; d < p.line[0].taps; ++d)
        for (int64_t h = 0; h < p.line[1].taps; ++h)
          for (int64_t w = 0; w < p.line[2].taps; ++w, to += wide) {
            const int64_t out = g * c_.outs + (result ? made : r), in = result ? r : made;
            load(w_.at(out, in, tap(p, 0, d), tap(p, 1, h), tap(p, 2, w)), along, to, there);
          }
  }
  // Whether the weights of a channel are a row, in the order of taps.
  bool lies_in_rows() const {
    int64_t step = 1;
    for (int i = kAxes - 1; i >= 0; --i) {
      if (w_.size[i] > 1 && w_.stride[i] != step) return false;
      step *= w_.size[i];
    }
    return reads_ == 1 || w_.channel == step;
  }
  // to[i][r] = from[r][i] for `height` rows and `n` columns.
  static void turn(const float* from, int64_t along, int64_t height, int64_t n, float* to, int64_t wide) {
    constexpr int64_t kStrip = 64;
    const uint32_t* rows[kSide];
    uint32_t* columns[kStrip];
    for (int64_t r = 0; r < height; r += kSide)
      for (int64_t i = 0; i < n; i += kStrip) {
        const int64_t high = std::min<int64_t>(kSide, height - r), here = std::min(kStrip, n - i);
        for (int64_t k = 0; k < high; ++k) rows[k] = reinterpret_cast<const uint32_t*>(from + (r + k) * along + i);
        for (int64_t k = 0; k < here; ++k) columns[k] = reinterpret_cast<uint32_t*>(to + (i + k) * wide);
        tile::transpose_strip<uint32_t>(rows, static_cast<int>(high), here, columns, r, false);
      }
  }
  static int64_t tap(const Pass& p, int i, int64_t t) { return p.line[i].tap + t * p.line[i].tap_step; }
  int64_t blocks_of_group() const { return (lanes_ + kBlock - 1) / kBlock; }
  float* packed_of(int64_t g, int64_t block, int64_t taps) const {
    return packed_ + (g * lanes_ + block * kBlock) * reads_ * taps;
  }

  // Where the places of each read channel and tap begin.
  void find_offsets(const Pass& p, const Lies& lies) const {
    int64_t* to = offsets_;
    const auto at = [&](int i, int64_t t) { return p.line[i].begin + t * p.line[i].dilate - lies.first[i]; };
    for (int64_t r = 0; r < reads_; ++r)
      for (int64_t d = 0; d < p.line[0].taps; ++d)
        for (int64_t h = 0; h < p.line[1].taps; ++h)
          for (int64_t w = 0; w < p.line[2].taps; ++w)
            *to++ = r * lies.channel + at(0, d) * lies.stride[0] + at(1, h) * lies.stride[1] + at(2, w);
  }
  Shape shape_of(const Pass& p, const Lies& lies) const {
    const Line &d = p.line[0], &h = p.line[1], &w = p.line[2];
    Shape s{w.count, h.count, d.count, w.move, h.move * lies.stride[1], d.move * lies.stride[0], 1, 1};
    const bool dense = h.step == 1 && w.step == 1 && y_.stride[1] == y_.stride[2] * s.width;
    if (s.move == 1 && s.next == s.width && dense)  // rows without ends between them are one
      s.width *= s.height, s.height = 1;
    if (2 * s.width <= kWidePlaces && s.height > 1) s.rows = 2;
    s.pieces = (s.width + kWidePlaces - 1) / kWidePlaces;
    return s;
  }

  // Pieces of work follow from sizes only. Weights that do not stay near are gone through once for all places.
  void compute(const Pass& p, int64_t first, int64_t images, const Lies& lies) {
    find_offsets(p, lies);
    shape_ = shape_of(p, lies);
    const int64_t depth = std::max<int64_t>(1, reads_ * p.taps()), blocks = blocks_of_group();
    const bool near = depth * lanes_ * static_cast<int64_t>(sizeof(float)) <= kNearWeights;
    const int64_t some = near ? blocks : 1, row_work = depth * shape_.width * some * kBlock;
    const int64_t most = std::clamp<int64_t>(kItemWork / row_work, 1, shape_.height);
    const int64_t rows = (most + shape_.rows - 1) / shape_.rows * shape_.rows;
    const int64_t runs = (shape_.height + rows - 1) / rows, parts = (blocks + some - 1) / some;
    parallel_for(c_.groups * parts * images * shape_.depth * runs,
                 std::max<int64_t>(1, kItemWork / 8 / (row_work * rows)), [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     int64_t rest = i;
                     const auto next = [&](int64_t by) {
                       const int64_t digit = rest % by;
                       return rest /= by, digit;
                     };
                     Item it{};
                     it.row = next(runs) * rows, it.d = next(shape_.depth);
                     const int64_t image = next(images);
                     it.block = next(parts) * some, it.g = rest;
                     it.n = first + image;
                     it.rows = std::min(rows, shape_.height - it.row), it.blocks = std::min(some, blocks - it.block);
                     it.x = lies.data + (lies.data == frames_ ? image : it.n) * lies.image +
                            it.g * reads_ * lies.channel + it.d * shape_.slab;
                     item(p, it);
                   }
                 });
  }

  void item(const Pass& p, const Item& it) const {
    for (int64_t r = 0; r < it.rows; r += shape_.rows) {
      const int rows = static_cast<int>(std::min(shape_.rows, it.rows - r));
      for (int64_t i = 0, column = 0; i < shape_.pieces; ++i) {
        const int64_t cols = shape_.width / shape_.pieces + (i < shape_.width % shape_.pieces);
        places(p, it, it.row + r, rows, column, cols);
        column += cols;
      }
    }
  }
  // The places of a tile, for all blocks of an item.
  void places(const Pass& p, const Item& it, int64_t row, int rows, int64_t column, int64_t cols) const {
    alignas(64) float sums[kSide * kBlock];
    const int64_t taps = reads_ * p.taps();
    const float* x = it.x + row * shape_.next + column * shape_.move;
    for (int64_t b = it.block; b < it.block + it.blocks; ++b) {
      const int64_t wide = std::min<int64_t>(kBlock, lanes_ - b * kBlock);
      const int64_t channel = it.g * made_ + b * kBlock, channels = std::min<int64_t>(wide, made_ - b * kBlock);
      const int64_t d = p.line[0].first + it.d * p.line[0].step, w = p.line[2].first + column * p.line[2].step;
      const Spot at{it.n, channel, channels, d, p.line[1].first + row * p.line[1].step, w};
      const WideTile tile = wide_tile_of(rows, cols, shape_.move, static_cast<int>(wide / kWidth));
      tile(packed_of(it.g, b, p.taps()), x, shape_.next, offsets_, taps,
           bias_ ? bias_ + it.g * lanes_ + b * kBlock : nullptr, sums);
      if (y_.channel == 1)
        finish_places(p, at, rows, cols, sums, wide);
      else
        finish_rows(p, at, rows, cols, sums, wide);
    }
  }
  // For each place its channels.
  void finish_places(const Pass& p, const Spot& at, int rows, int64_t cols, float* sums, int64_t wide) const {
    for (int r = 0; r < rows; ++r)
      for (int64_t i = 0; i < cols; ++i, sums += wide) {
        const int64_t h = at.h + r * p.line[1].step, w = at.w + i * p.line[2].step;
        if (epilogue_) epilogue_->norm_each(at.channel, sums, at.channels);
        put(y_.at(at.n, at.channel, at.d, h, w), 1, sums, at.channels);
      }
  }
  // Turns [place][channel] into rows of places.
  void finish_rows(const Pass& p, const Spot& at, int rows, int64_t cols, const float* sums, int64_t wide) const {
    alignas(64) float turned[kBlock * kSide];
    const uint32_t* from[kSide];
    uint32_t* to[kBlock];
    for (int i = 0; i < kSide; ++i) from[i] = reinterpret_cast<const uint32_t*>(sums + i * wide);
    for (int i = 0; i < wide; ++i) to[i] = reinterpret_cast<uint32_t*>(turned + i * kSide);
    tile::transpose_strip<uint32_t>(from, kSide, wide, to, 0, false);
    for (int64_t m = 0; epilogue_ && m < at.channels; ++m) epilogue_->norm(at.channel + m, turned + m * kSide, kSide);
    const int64_t step = p.line[2].step * y_.stride[2];
    for (int r = 0; r < rows; ++r) {
      const int64_t h = at.h + r * p.line[1].step;
      char* y = y_.at(at.n, at.channel, at.d, h, at.w);
      for (int64_t m = 0; m < at.channels; ++m, y += y_.channel * size_of(y_.element))
        put(y, step, turned + m * kSide + r * cols, cols);
    }
  }
  void put(char* to, int64_t step, const float* from, int64_t n) const {
    if (step != 1 || y_.element != Element::F32) return store_(to, step, from, n);
    move_values(reinterpret_cast<float*>(to), from, n);
  }

  const Conv& c_;
  Makes makes_;
  Planes x_, w_, y_;
  Frame frame_;
  Room room_;
  int64_t reads_, made_, lanes_;
  StoreFn<float> store_;
  const Epilogue<float>* epilogue_;
  float *packed_, *bias_, *frames_;
  int64_t* offsets_;
  Shape shape_{};
};

}  // namespace

void run_wide_pass(const Conv& c, Makes makes, const TensorView& read, const TensorView& weight, const TensorView& bias,
                   const TensorView& made, void* workspace, const Epilogue<float>* epilogue) {
  Wide(c, makes, read, weight, bias, made, workspace, epilogue).run();
}

}  // namespace baracuda::conv
