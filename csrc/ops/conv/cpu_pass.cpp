// A pass from one activation to the other: conv, the gradient of its image, and conv_transpose.
#include "core/compute.h"
#include "ops/conv/cpu.h"
#include "ops/conv/depthwise.h"
#include "ops/conv/framer.h"
#include "ops/conv/tile.h"

namespace baracuda::conv {
namespace {

constexpr int64_t kItemWork = int64_t{4} << 20;  // multiply-adds that are worth a thread's while
constexpr int64_t kItemChannels = 64;

template <class C>
class Run {
 public:
  Run(const Conv& c, Makes makes, const TensorView& read, const TensorView& weight, const TensorView& bias,
      const TensorView& made, void* workspace, const Epilogue<C>* epilogue)
      : c_(c),
        makes_(makes),
        x_(read),
        w_(weight),
        y_(made),
        frame_(c, makes),
        room_(room_of_pass(c, makes, sizeof(C))),
        reads_(read_channels(c, makes)),
        makes_channels_(made_channels(c, makes)),
        block_(makes_channels_ <= 2 ? 1 : kTileChannels),
        store_(storer<C>(y_.element)),
        epilogue_(epilogue) {
    char* at = static_cast<char*>(workspace);
    auto take = [&](int64_t bytes) { return at += bytes, at - bytes; };
    packed_ = reinterpret_cast<C*>(take(room_.weights));
    offsets_ = reinterpret_cast<int64_t*>(take(room_.offsets));
    bias_ = reinterpret_cast<C*>(take(room_.bias));
    frames_ = reinterpret_cast<C*>(at);
    if (!bias.present()) bias_ = nullptr;
    if (bias_) load<C>(bias.element, bias.data, bias.strides[0], bias_, bias.shape[0]);
  }

  void run() {
    if (!epilogue_ && reads_ == 1 && makes_channels_ == 1 && AlongChannels<C>::takes(x_, y_, c_.groups, c_.taps()))
      return along_channels();
    if (lies_as_frame()) return all_passes([&](const Pass& p) { in_place(p); });
    if (room_.own) return all_passes([&](const Pass& p) { own_frames(p); });
    const Framer<C> framer(x_, frame_);
    const int64_t channels = c_.groups * reads_, size = frame_.size();
    framed_images(c_, framer, channels, size, room_, frames_, [&](int64_t first, int64_t images) {
      all_passes([&](const Pass& p) {
        compute(p, first, images,
                [&](int64_t n, int64_t g) { return frames_ + ((n - first) * channels + g * reads_) * size; });
      });
    });
  }

 private:
  struct Shape {  // of a pass, as tiles see it
    int64_t width, height, depth, pitch, slab;
  };

  // Whether x is a frame as it is: no padding, no stride, dense rows.
  bool lies_as_frame() const {
    if (x_.element != element_of<C> || (x_.stride[2] != 1 && x_.size[2] > 1)) return false;
    for (int i = 0; i < kAxes; ++i) {
      const FrameAxis& a = frame_.axis[i];
      if (a.move != 1 || a.first < 0 || a.first + a.places > x_.size[i]) return false;
    }
    const int64_t pitch = x_.stride[1];
    return frame_.axis[1].places <= 1 || (pitch >= x_.size[2] && pitch <= x_.size[2] + x_.size[2] / 4);
  }

  template <class Body>
  void all_passes(Body body) {
    const int64_t passes = passes_of(c_, makes_);
    for (int64_t i = 0; i < passes; ++i) {
      const Pass p = pass_of(c_, makes_, i);
      if (p.empty()) continue;
      pack(p);
      body(p);
    }
  }

  // One channel after another is in memory, and each is convolved alone.
  void along_channels() {
    const int64_t passes = passes_of(c_, makes_);
    for (int64_t i = 0; i < passes; ++i) {
      const Pass p = pass_of(c_, makes_, i);
      if (p.empty()) continue;
      C* to = packed_;
      each_tap(p, [&](const int64_t (&k)[kAxes]) {
        load<C>(w_.element, w_.at(0, 0, k[0], k[1], k[2]), w_.outer, to, c_.groups);
        to += c_.groups;
      });
      AlongChannels<C>(x_, y_, c_.groups, packed_, bias_).run(p, c_.n);
    }
  }
  template <class F>
  static void each_tap(const Pass& p, F&& f) {
    for (int64_t d = 0; d < p.line[0].taps; ++d)
      for (int64_t h = 0; h < p.line[1].taps; ++h)
        for (int64_t w = 0; w < p.line[2].taps; ++w) f({tap(p, 0, d), tap(p, 1, h), tap(p, 2, w)});
  }

  // The weights of a pass as [group][block of channels][read channel and tap][channel].
  void pack(const Pass& p) {
    const int64_t taps = p.taps(), per_block = reads_ * taps * block_, blocks = blocks_of_group();
    const bool result = makes_ == Makes::Result;
    parallel_for(c_.groups * blocks, row_grain(per_block), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        C* to = packed_ + i * per_block;
        const int64_t g = i / blocks, made = i % blocks * block_;
        for (int64_t r = 0; r < reads_; ++r) {
          for (int64_t t = 0; t < taps; ++t, to += block_) {
            const int64_t tw = t % p.line[2].taps, th = t / p.line[2].taps % p.line[1].taps,
                          td = t / p.line[2].taps / p.line[1].taps;
            const int64_t k[] = {tap(p, 0, td), tap(p, 1, th), tap(p, 2, tw)};
            const int64_t there = std::min<int64_t>(block_, makes_channels_ - made);
            std::fill(to + there, to + block_, C(0));
            const int64_t out = g * c_.outs + (result ? made : r), in = result ? r : made;
            load<C>(w_.element, w_.at(out, in, k[0], k[1], k[2]), result ? w_.outer : w_.channel, to, there);
          }
        }
      }
    });
  }
  static int64_t tap(const Pass& p, int i, int64_t t) { return p.line[i].tap + t * p.line[i].tap_step; }
  int64_t blocks_of_group() const { return (makes_channels_ + block_ - 1) / block_; }

  // Where the places of each read channel and tap begin.
  template <class Offset>
  void find_offsets(const Pass& p, int64_t channel_stride, Offset offset) {
    int64_t* to = offsets_;
    for (int64_t r = 0; r < reads_; ++r)
      for (int64_t d = 0; d < p.line[0].taps; ++d)
        for (int64_t h = 0; h < p.line[1].taps; ++h)
          for (int64_t w = 0; w < p.line[2].taps; ++w) {
            const int64_t begin[] = {p.line[0].begin + d * p.line[0].dilate, p.line[1].begin + h * p.line[1].dilate,
                                     p.line[2].begin + w * p.line[2].dilate};
            *to++ = r * channel_stride + offset(begin);
          }
  }
  void framed_offsets(const Pass& p) {
    find_offsets(p, frame_.size(), [&](const int64_t (&begin)[kAxes]) { return frame_.offset(begin); });
    shape_ = {p.line[2].count, p.line[1].count, p.line[0].count, frame_.pitch(), frame_.slab()};
  }

  void in_place(const Pass& p) {
    find_offsets(p, x_.channel, [&](const int64_t (&begin)[kAxes]) {
      return begin[0] * x_.stride[0] + begin[1] * x_.stride[1] + begin[2] * x_.stride[2];
    });
    const int64_t width = p.line[2].count, pitch = frame_.axis[1].places <= 1 ? width : x_.stride[1];
    shape_ = {width, p.line[1].count, p.line[0].count, pitch, x_.stride[0]};
    exact_ = true;
    compute_offsets_known(
        p, 0, c_.n, [&](int64_t n, int64_t g) { return reinterpret_cast<const C*>(x_.at(n, g * reads_, 0, 0, 0)); });
  }
  template <class Source>
  void compute(const Pass& p, int64_t first, int64_t images, Source source) {
    framed_offsets(p);
    compute_offsets_known(p, first, images, source);
  }
  void own_frames(const Pass& p) {
    framed_offsets(p);
    const Framer<C> framer(x_, frame_);
    const int64_t one = room_.frames / max_threads() / static_cast<int64_t>(sizeof(C)), size = frame_.size();
    const int64_t work = reads_ * size + reads_ * p.taps() * makes_channels_ * places();
    parallel_for(c_.n * c_.groups, std::max<int64_t>(1, kItemWork / 8 / std::max<int64_t>(1, work)),
                 [&](int64_t begin, int64_t end) {
                   C* frame = frames_ + thread_index() * one;
                   std::fill_n(frame + reads_ * size, kSlack, C(0));
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t n = i / c_.groups, g = i % c_.groups;
                     framer.copy(n, g * reads_, reads_, frame);
                     for (int64_t d = 0; d < shape_.depth; ++d)
                       tiles(p, frame + d * shape_.slab, n, g, d, 0, places(), 0, blocks_of_group());
                   }
                 });
  }
  // Places of a slice, with the ends of rows between them.
  int64_t places() const { return (shape_.height - 1) * shape_.pitch + shape_.width; }

  // Pieces of work follow from sizes only.
  template <class Source>
  void compute_offsets_known(const Pass& p, int64_t first, int64_t images, Source source) {
    merge_rows(p);
    const int64_t depth = std::max<int64_t>(1, reads_ * p.taps()), step = widest();
    const int64_t channels = std::min(kItemChannels, makes_channels_), blocks = (channels + block_ - 1) / block_;
    const int64_t parts = (blocks_of_group() + blocks - 1) / blocks;
    const int64_t run = std::clamp<int64_t>(kItemWork / (depth * channels * step), 1, 64) * step;
    const int64_t runs = (places() + run - 1) / run, slices = shape_.depth;
    parallel_for(images * c_.groups * slices * runs * parts,
                 std::max<int64_t>(1, kItemWork / 8 / (depth * channels * run)), [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     int64_t rest = i;
                     auto next = [&](int64_t by) {
                       const int64_t digit = rest % by;
                       return rest /= by, digit;
                     };
                     const int64_t at = next(runs) * run, part = next(parts) * blocks, d = next(slices),
                                   g = next(c_.groups);
                     tiles(p, source(first + rest, g) + d * shape_.slab, first + rest, g, d, at,
                           std::min(run, places() - at), part, std::min(blocks, blocks_of_group() - part));
                   }
                 });
  }
  // Rows without ends between them, on both sides, are one.
  void merge_rows(const Pass& p) {
    const bool dense = p.line[1].step == 1 && p.line[2].step == 1 && y_.stride[1] == y_.stride[2] * shape_.width;
    if (shape_.pitch != shape_.width || !dense) return;
    shape_.width *= shape_.height, shape_.height = 1, shape_.pitch = shape_.width;
  }
  int64_t widest() const { return Lanes<C>::kWidth * (block_ == 1 ? kAloneVectors : kTileVectors); }

  // Places [at, at + n) of a slice for blocks [block, block + blocks) of channels.
  void tiles(const Pass& p, const C* x, int64_t n, int64_t g, int64_t d, int64_t at, int64_t count, int64_t block,
             int64_t blocks) const {
    const int64_t step = widest();
    while (count > 0) {
      for (int64_t b = block; b < block + blocks; ++b) {
        const int64_t k = reads_ * p.taps();
        const C* w = packed_ + (g * blocks_of_group() + b) * k * block_;
        const bool whole = count >= step;
        if (block_ == 1)
          whole ? one<1, kAloneVectors>(p, w, x + at, k, step, n, g, d, at, b)
                : rest<1, kAloneVectors>(p, w, x + at, k, count, n, g, d, at, b);
        else
          whole ? one<kTileChannels, kTileVectors>(p, w, x + at, k, step, n, g, d, at, b)
                : rest<kTileChannels, kTileVectors>(p, w, x + at, k, count, n, g, d, at, b);
      }
      at += step, count -= step;
    }
  }
  // Fewer places than a tile has: as few vectors as hold them.
  template <int kM, int kV>
  void rest(const Pass& p, const C* w, const C* x, int64_t k, int64_t count, int64_t n, int64_t g, int64_t d,
            int64_t at, int64_t b) const {
    if constexpr (kV > 1) {
      if (count <= (kV - 1) * Lanes<C>::kWidth) return rest<kM, kV - 1>(p, w, x, k, count, n, g, d, at, b);
    }
    one<kM, kV>(p, w, x, k, count, n, g, d, at, b);
  }
  template <int kM, int kV>
  void one(const Pass& p, const C* w, const C* x, int64_t k, int64_t count, int64_t n, int64_t g, int64_t d, int64_t at,
           int64_t b) const {
    constexpr int64_t kWidth = Lanes<C>::kWidth;
    alignas(64) C sums[kM * kV * kWidth];
    const int64_t first = b * kM, channels = std::min<int64_t>(kM, makes_channels_ - first);
    if (const int64_t last = count - (kV - 1) * kWidth; exact_ && last < kWidth)
      tile<C, kM, kV, true>(w, x, offsets_, k, last, sums);
    else
      tile<C, kM, kV, false>(w, x, offsets_, k, last, sums);
    finish(p, sums, kV * kWidth, n, g * makes_channels_ + first, channels, d, at, count);
  }

  // Lays sums of places [at, at + count) down, without those between rows.
  void finish(const Pass& p, C* sums, int64_t stride, int64_t n, int64_t channel, int64_t channels, int64_t d,
              int64_t at, int64_t count) const {
    if (bias_) {
      for (int64_t m = 0; m < channels; ++m)
        for (int64_t i = 0; i < stride; ++i) sums[m * stride + i] += bias_[channel + m];
    }
    for (int64_t m = 0; epilogue_ && m < channels; ++m) epilogue_->norm(channel + m, sums + m * stride, stride);
    const int64_t step = y_.stride[2] * p.line[2].step, depth = p.line[0].first + d * p.line[0].step;
    int64_t row = at / shape_.pitch, column = at % shape_.pitch;
    for (int64_t i = 0; i < count; ++row, column = 0) {
      const int64_t here = std::min(count - i, shape_.width - column);
      if (here > 0) {
        const int64_t h = p.line[1].first + row * p.line[1].step, w = p.line[2].first + column * p.line[2].step;
        char* to = y_.at(n, channel, depth, h, w);
        for (int64_t m = 0; m < channels; ++m, to += y_.channel * size_of(y_.element))
          put(to, step, sums + m * stride + i, here);
      }
      i += shape_.pitch - column;
    }
  }
  void put(char* to, int64_t step, const C* from, int64_t n) const {
    if (step != 1 || y_.element != element_of<C>) return store_(to, step, from, n);
    move_values(reinterpret_cast<C*>(to), from, n);
  }

  const Conv& c_;
  Makes makes_;
  Planes x_, w_, y_;
  Frame frame_;
  Room room_;
  int64_t reads_, makes_channels_, block_;
  StoreFn<C> store_;
  const Epilogue<C>* epilogue_;
  C *packed_, *bias_, *frames_;
  int64_t* offsets_;
  Shape shape_{};
  bool exact_ = false;  // nothing behind the last place may be read
};

}  // namespace

template <class C>
void run_pass(const Conv& c, Makes makes, const TensorView& read, const TensorView& weight, const TensorView& bias,
              const TensorView& made, void* workspace, const Epilogue<C>* epilogue) {
  if (made.numel() == 0) return;
  if constexpr (sizeof(C) == 4)
    if (in_lanes(c, makes, sizeof(C))) return run_wide_pass(c, makes, read, weight, bias, made, workspace, epilogue);
  Run<C>(c, makes, read, weight, bias, made, workspace, epilogue).run();
}
template void run_pass(const Conv&, Makes, const TensorView&, const TensorView&, const TensorView&, const TensorView&,
                       void*, const Epilogue<float>*);
template void run_pass(const Conv&, Makes, const TensorView&, const TensorView&, const TensorView&, const TensorView&,
                       void*, const Epilogue<double>*);

void run_pass(const Conv& c, Makes makes, const TensorView& read, const TensorView& weight, const TensorView& bias,
              const TensorView& made, void* workspace) {
  made.element == Element::F64 ? run_pass<double>(c, makes, read, weight, bias, made, workspace, nullptr)
                               : run_pass<float>(c, makes, read, weight, bias, made, workspace, nullptr);
}

}  // namespace baracuda::conv
