// The gradients of weights and bias. Results are packed as [place][channel], so that channels lie in the lanes of a
// register while values of the image are broadcast from its frame: no sum crosses lanes, and nothing but places is
// multiplied. Where a group has one channel or two, places lie in the lanes instead.
#include <algorithm>

#include "host/lanes.h"
#include "ops/conv/cpu.h"
#include "ops/conv/framer.h"
#include "ops/conv/tile.h"

namespace baracuda::conv {
namespace {

constexpr int kSumVectors = level::kRegisters / 8, kSumTaps = level::kRegisters == 32 ? 6 : 5;
constexpr int64_t kItemTaps = 48 * kSumTaps;

// to[t][lane] += sum over places of packed[place][lane] * x[t][at[place]]; kN <= kSumTaps taps.
template <class C, int kV, int kN>
inline void add_products(const C* packed, const C* const* x, const int64_t* runs, int64_t n_runs, C* to,
                         int64_t stride) {
  using L = Lanes<C>;
  using Vec = typename L::Vec;
  Vec s[kN][kV] = {};
  for (int64_t r = 0; r < n_runs; ++r) {
    const int64_t from = runs[2 * r], count = runs[2 * r + 1];
    for (int64_t i = 0; i < count; ++i, packed += kV * L::kWidth) {
      Vec b[kV];
#pragma GCC unroll 16
      for (int v = 0; v < kV; ++v) b[v] = L::load(packed + v * L::kWidth);
#pragma GCC unroll 16
      for (int t = 0; t < kN; ++t) {
        const C a = x[t][from + i];
#pragma GCC unroll 16
        for (int v = 0; v < kV; ++v) s[t][v] += a * b[v];
      }
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < kN; ++t)
#pragma GCC unroll 16
    for (int v = 0; v < kV; ++v) {
      C* at = to + t * stride + v * L::kWidth;
      const Vec sum = L::load(at) + s[t][v];
      std::memcpy(at, &sum, sizeof sum);
    }
}

template <class C>
class Filter {
 public:
  Filter(const Conv& c, const TensorView& image, const TensorView& result, const TensorView& dweight, void* workspace)
      : c_(c),
        x_(image),
        dy_(result),
        dw_(dweight),
        frame_(c, Makes::Result),
        room_(room_of_filter(c, sizeof(C))),
        pass_(pass_of(c, Makes::Result, 0)),
        taps_(c.ins * c.taps()),
        load_(loader<C>(dy_.element)) {
    char* at = static_cast<char*>(workspace);
    auto take = [&](int64_t bytes) { return at += bytes, at - bytes; };
    sums_ = reinterpret_cast<C*>(take(room_.room.weights));
    offsets_ = reinterpret_cast<int64_t*>(take(room_.room.offsets));
    frames_ = reinterpret_cast<C*>(take(room_.room.frames));
    packed_ = reinterpret_cast<C*>(at);
    int64_t* to = offsets_;
    for (int64_t r = 0; r < c.ins; ++r)
      for (int64_t d = 0; d < c.axis[0].taps; ++d)
        for (int64_t h = 0; h < c.axis[1].taps; ++h)
          for (int64_t w = 0; w < c.axis[2].taps; ++w) {
            const int64_t begin[] = {pass_.line[0].begin + d * pass_.line[0].dilate,
                                     pass_.line[1].begin + h * pass_.line[1].dilate,
                                     pass_.line[2].begin + w * pass_.line[2].dilate};
            *to++ = r * frame_.size() + frame_.offset(begin);
          }
  }

  void run() {
    const int64_t sums = room_.parts * c_.groups * taps_ * room_.lanes;
    std::fill_n(sums_, sums, C(0));
    const Framer<C> framer(x_, frame_);
    const int64_t channels = c_.groups * c_.ins, size = frame_.size();
    if (c_.places() > 0) {
      if (room_.room.own) {
        own_frames(framer);
      } else {
        framed_images(c_, framer, channels, size, room_.room, frames_,
                      [&](int64_t first, int64_t images) { add_images(first, images); });
      }
    }
    write();
  }

 private:
  // A group's images in turn, each framed by the thread that adds it.
  void own_frames(const Framer<C>& framer) {
    const int64_t one = room_.room.frames / max_threads() / static_cast<int64_t>(sizeof(C)), size = frame_.size();
    parallel_for(room_.parts * c_.groups, 1, [&](int64_t begin, int64_t end) {
      C* frame = frames_ + thread_index() * one;
      std::fill_n(frame + c_.ins * size, kSlack, C(0));
      for (int64_t i = begin; i < end; ++i) {
        const int64_t part = i % room_.parts, g = i / room_.parts;
        for (int64_t n = part * c_.n / room_.parts; n < (part + 1) * c_.n / room_.parts; ++n) {
          framer.copy(n, g * c_.ins, c_.ins, frame);
          add_image(frame, n, g, part, 0, taps_, 0, room_.lanes);
        }
      }
    });
  }
  void add_images(int64_t first, int64_t images) {
    const int64_t pieces = (taps_ + kItemTaps - 1) / kItemTaps, blocks = room_.lanes / kWidestLanes,
                  size = frame_.size();
    parallel_for(room_.parts * c_.groups * blocks * pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t rest = i;
        auto next = [&](int64_t by) {
          const int64_t digit = rest % by;
          return rest /= by, digit;
        };
        const int64_t part = next(room_.parts), tap = next(pieces) * kItemTaps, lane = next(blocks) * kWidestLanes;
        const int64_t taps = std::min(kItemTaps, taps_ - tap);
        const int64_t from = std::max(first, part * c_.n / room_.parts);
        const int64_t to = std::min(first + images, (part + 1) * c_.n / room_.parts);
        for (int64_t n = from; n < to; ++n)
          add_image(frames_ + ((n - first) * c_.groups + rest) * c_.ins * size, n, rest, part, tap, taps, lane,
                    kWidestLanes);
      }
    });
  }

  // Adds an image to the sums of taps [tap, tap + taps) and of the lanes from `lane` on.
  void add_image(const C* frame, int64_t n, int64_t g, int64_t part, int64_t tap, int64_t taps, int64_t lane,
                 int64_t lanes) {
    C* sums = sums_ + ((part * c_.groups + g) * taps_ + tap) * room_.lanes;
    for (int64_t d = 0; d < c_.axis[0].out; ++d) {
      const C* slice = frame + d * frame_.slab();
      if (c_.outs <= 2) {
        add_rows(slice, n, g, d, sums, tap, taps);
      } else {
        for (int64_t l = lane; l < lane + lanes; l += kSumVectors * Lanes<C>::kWidth)
          if (l < c_.outs) add_places(slice, n, g, d, sums + l, tap, taps, l);
      }
    }
  }

  // In pieces of at most kSumPlaces places, which may be several rows or a part of one.
  void add_places(const C* slice, int64_t n, int64_t g, int64_t d, C* sums, int64_t tap, int64_t taps, int64_t lane) {
    constexpr int64_t kLanes = kSumVectors * Lanes<C>::kWidth;
    C* packed = packed_ + thread_index() * (room_.packed / static_cast<int64_t>(sizeof(C)));
    const int64_t width = c_.axis[2].out, height = c_.axis[1].out;
    int64_t runs[2 * kSumPlaces], n_runs = 0, filled = 0;
    const auto add = [&] {
      products(packed, slice, runs, n_runs, sums, tap, taps);
      n_runs = filled = 0;
    };
    for (int64_t h = 0; h < height; ++h) {
      for (int64_t w = 0; w < width;) {
        const int64_t count = std::min(kSumPlaces - filled, width - w);
        pack(packed + filled * kLanes, n, g, d, h, w, count, lane);
        runs[2 * n_runs] = h * frame_.pitch() + w, runs[2 * n_runs + 1] = count, ++n_runs;
        w += count, filled += count;
        if (filled == kSumPlaces) add();
      }
    }
    if (filled > 0) add();
  }
  void products(const C* packed, const C* slice, const int64_t* runs, int64_t n_runs, C* sums, int64_t tap,
                int64_t taps) {
    const C* x[kSumTaps];
    for (int64_t t = 0; t < taps; t += kSumTaps) {
      const int64_t here = std::min<int64_t>(kSumTaps, taps - t);
      for (int64_t i = 0; i < here; ++i) x[i] = slice + offsets_[tap + t + i];
      some_taps<kSumTaps>(here, packed, x, runs, n_runs, sums + t * room_.lanes);
    }
  }
  template <int kN>
  void some_taps(int64_t taps, const C* packed, const C* const* x, const int64_t* runs, int64_t n_runs, C* sums) {
    if constexpr (kN > 1) {
      if (taps < kN) return some_taps<kN - 1>(taps, packed, x, runs, n_runs, sums);
    }
    add_products<C, kSumVectors, kN>(packed, x, runs, n_runs, sums, room_.lanes);
  }
  // Places [w, w + count) of a row as [place][channel]: 16 places at a time, so that lines stay in the nearest cache.
  void pack(C* to, int64_t n, int64_t g, int64_t d, int64_t h, int64_t w, int64_t count, int64_t lane) {
    constexpr int64_t kLanes = kSumVectors * Lanes<C>::kWidth, kPlaces = 64;
    C row[kPlaces];
    const int64_t there = std::min<int64_t>(kLanes, c_.outs - lane);
    if (there < kLanes) std::fill_n(to, count * kLanes, C(0));
    for (int64_t at = 0; at < count; at += kPlaces) {
      const int64_t places = std::min(kPlaces, count - at);
      for (int64_t l = 0; l < there; ++l) {
        load_(dy_.at(n, g * c_.outs + lane + l, d, h, w + at), dy_.stride[2], row, places);
        for (int64_t i = 0; i < places; ++i) to[(at + i) * kLanes + l] = row[i];
      }
    }
  }

  // Few channels: sums over the lanes of rows.
  void add_rows(const C* slice, int64_t n, int64_t g, int64_t d, C* sums, int64_t tap, int64_t taps) {
    using L = Lanes<C>;
    constexpr int64_t kTaps = 32;
    const int64_t width = c_.axis[2].out;
    C* row = packed_ + thread_index() * (room_.packed / static_cast<int64_t>(sizeof(C)));
    for (int64_t m = 0; m < c_.outs; ++m) {
      for (int64_t first = 0; first < taps; first += kTaps) {
        const int64_t here = std::min(kTaps, taps - first);
        typename L::Vec total[kTaps] = {};
        for (int64_t h = 0; h < c_.axis[1].out; ++h) {
          for (int64_t w = 0; w < width; w += kSumPlaces) {
            const int64_t count = std::min(kSumPlaces, width - w);
            load_(dy_.at(n, g * c_.outs + m, d, h, w), dy_.stride[2], row, count);
            for (int64_t t = 0; t < here; ++t) {
              const C* x = slice + offsets_[tap + first + t] + h * frame_.pitch() + w;
              total[t] += lane_sums<C>(count, [](auto a, auto b) { return a * b; }, static_cast<const C*>(row), x);
            }
          }
        }
        for (int64_t t = 0; t < here; ++t) sums[(first + t) * room_.lanes + m] += fold_vector<C>(total[t], Add());
      }
    }
  }

  // The sums of all parts, laid down as the weights are.
  void write() {
    const int64_t taps = c_.taps(), part = c_.groups * taps_ * room_.lanes;
    parallel_for(c_.groups * taps_, row_grain(room_.lanes), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t g = i / taps_, in = i % taps_ / taps, t = i % taps;
        const int64_t w = t % c_.axis[2].taps, h = t / c_.axis[2].taps % c_.axis[1].taps;
        const int64_t d = t / c_.axis[2].taps / c_.axis[1].taps;
        C* sum = sums_ + i * room_.lanes;
        for (int64_t p = 1; p < room_.parts; ++p)
          for (int64_t m = 0; m < c_.outs; ++m) sum[m] += sum[p * part + m];
        store<C>(dw_.element, dw_.at(g * c_.outs, in, d, h, w), dw_.outer, sum, c_.outs);
      }
    });
  }

  const Conv& c_;
  Planes x_, dy_, dw_;
  Frame frame_;
  FilterRoom room_;
  Pass pass_;
  int64_t taps_;
  LoadFn<C> load_;
  C *sums_, *frames_, *packed_;
  int64_t* offsets_;
};

template <class C>
void sum_channels(const TensorView& dy, const TensorView& dbias) {
  const Planes p(dy);
  const int64_t width = p.size[2], rows = p.size[0] * p.size[1], n = dy.shape[0];
  parallel_for(dy.shape[1], row_grain(n * rows * width), [&](int64_t begin, int64_t end) {
    alignas(64) C row[kSumPlaces];
    for (int64_t c = begin; c < end; ++c) {
      CompensatedSum<C> sum;
      for (int64_t r = 0; r < n * rows; ++r) {
        const int64_t image = r / rows, h = r % p.size[1], d = r % rows / p.size[1];
        for (int64_t w = 0; w < width; w += kSumPlaces) {
          const int64_t count = std::min(kSumPlaces, width - w);
          load<C>(p.element, p.at(image, c, d, h, w), p.stride[2], row, count);
          sum.add(lane_sum<C>(count, [](auto v) { return v; }, static_cast<const C*>(row)));
        }
      }
      const C value = sum.value();
      store<C>(dbias.element, dbias.as<char>() + c * dbias.strides[0] * size_of(dbias.element), 1, &value, 1);
    }
  });
}

}  // namespace

void run_filter(const Conv& c, const TensorView& image, const TensorView& result, const TensorView& dweight,
                void* workspace) {
  dweight.element == Element::F64 ? Filter<double>(c, image, result, dweight, workspace).run()
                                  : Filter<float>(c, image, result, dweight, workspace).run();
}
void run_bias(const TensorView& dy, const TensorView& dbias) {
  dy.element == Element::F64 ? sum_channels<double>(dy, dbias) : sum_channels<float>(dy, dbias);
}

}  // namespace baracuda::conv
