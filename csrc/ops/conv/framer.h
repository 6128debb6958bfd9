// Copies planes into frames.
#pragma once
#include "host/convert.h"
#include "host/fetch_ahead.h"
#include "host/rows.h"
#include "ops/conv/frame.h"
#include "ops/conv/moves.h"
#include "ops/conv/planes.h"

namespace baracuda::conv {

// Frames of a tensor: values of type C, one frame for each image and channel.
template <class C>
class Framer {
 public:
  Framer(const Planes& planes, const Frame& frame)
      : x_(planes), f_(frame), load_(loader<C>(planes.element)), direct_(planes.element == element_of<C>) {}

  // Those of `channels` channels, where neighbours in memory are near each other in time.
  void copy(int64_t n, int64_t first, int64_t channels, C* to) const {
    const int64_t size = f_.size();
    if (x_.channels_last()) return rows(n, first, channels, to);
    for (int64_t c = 0; c < channels; ++c) rows(n, first + c, 1, to + c * size);
  }

 private:
  // The rows of a frame in their order, each for all channels.
  void rows(int64_t n, int64_t channel, int64_t channels, C* to) const {
    for (int64_t phase_d = 0; phase_d < f_.axis[0].phases; ++phase_d)
      for (int64_t phase_h = 0; phase_h < f_.axis[1].phases; ++phase_h)
        for (int64_t phase_w = 0; phase_w < f_.axis[2].phases; ++phase_w) {
          const Taken w = taken(phase_w);
          for (int64_t d = 0; d < f_.axis[0].places; ++d)
            for (int64_t h = 0; h < f_.axis[1].places; ++h, to += f_.pitch()) {
              const int64_t z = position(0, phase_d, d), y = position(1, phase_h, h);
              const bool inside = y >= 0 && y < x_.size[1] && z >= 0 && z < x_.size[0];
              const char* from = inside ? x_.at(n, channel, z, y, 0) : nullptr;
              for (int64_t c = 0; c < channels; ++c) {
                C* row = to + c * f_.size();
                inside ? values(from + c * x_.channel * size_of(x_.element), w, row) : clear_values(row, f_.pitch());
              }
            }
        }
  }
  // What of a row a phase takes: places [begin, end) lie in the tensor, the first of them at `at`.
  struct Taken {
    int64_t begin, end, at, step;
    bool ahead;
  };
  Taken taken(int64_t phase) const {
    const int64_t move = f_.axis[2].move, pitch = f_.pitch(), first = f_.axis[2].first + phase;
    const int64_t begin = first >= 0 ? 0 : std::min(pitch, move == 1 ? -first : (-first + move - 1) / move);
    const int64_t there = x_.size[2] - first;
    const int64_t end = std::clamp(move == 1 ? there : (there + move - 1) / move, begin, pitch);
    return {begin, end, first + begin * move, x_.stride[2] * move, x_.stride[2] == 1 && phase == 0};
  }
  [[gnu::always_inline]] void values(const char* from, const Taken& w, C* to) const {
    clear_values(to, w.begin), clear_values(to + w.end, f_.pitch() - w.end);
    if (w.ahead) fetch_ahead(from, x_.size[2] * size_of(x_.element));
    const int64_t n = w.end - w.begin;
    if (n <= 0) return;
    from += w.at * x_.stride[2] * size_of(x_.element), to += w.begin;
    if (!direct_ || w.step < 1 || w.step > 2) return load_(from, w.step, to, n);
    const C* x = reinterpret_cast<const C*>(from);
    if (w.step == 1) return move_values(to, x, n);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = x[2 * i];
  }
  int64_t position(int i, int64_t phase, int64_t place) const {
    return f_.axis[i].first + phase + place * f_.axis[i].move;
  }

  const Planes& x_;
  const Frame& f_;
  LoadFn<C> load_;
  bool direct_;
};

// Calls body(begin, end) of images that are framed at `frames` by then, a few at a time.
template <class C, class Body>
void framed_images(const Conv& c, const Framer<C>& framer, int64_t channels, int64_t size, const Room& room, C* frames,
                   Body body) {
  std::fill_n(frames + room.images * channels * size, kSlack, C(0));
  constexpr int64_t kTogether = 8;  // channels that a thread takes, which may share lines of memory
  const int64_t pieces = (channels + kTogether - 1) / kTogether;
  for (int64_t first = 0; first < c.n; first += room.images) {
    const int64_t images = std::min(room.images, c.n - first);
    parallel_for(images * pieces, row_grain(kTogether * size), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t n = i / pieces, at = i % pieces * kTogether;
        framer.copy(first + n, at, std::min(kTogether, channels - at), frames + (n * channels + at) * size);
      }
    });
    body(first, images);
  }
}

}  // namespace baracuda::conv
