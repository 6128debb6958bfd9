// What CPU kernels copy planes into: a frame of zeros, split by the remainders of positions by the stride. There the
// row of the matrix that belongs to a tap is the plane itself from an offset on, places running through the ends of
// rows: a convolution is a product whose right matrix is never written down. Sizes of all scratch follow from here.
#pragma once
#include "core/parallel.h"
#include "ops/conv/problem.h"

namespace baracuda::conv {

struct FrameAxis {
  int64_t first = 0;   // the position that lies at 0
  int64_t move = 1;    // positions that lie side by side are so far apart
  int64_t phases = 1;  // remainders that a tap reads
  int64_t places = 0;  // positions of each
};

// With `whole` it is not split: places that are read next to each other lie as far apart as in the tensor.
inline FrameAxis frame_axis(const Axis& a, Makes makes, bool whole = false) {
  FrameAxis f;
  f.move = makes == Makes::Result && !whole ? a.stride : 1;
  const int64_t lines = lines_of(a, makes);
  bool any = false;
  for (int64_t i = 0; i < lines; ++i) {
    const Line l = line_of(a, makes, i);
    if (l.taps == 0 || l.count == 0) continue;
    const int64_t first = l.begin + std::min<int64_t>(0, (l.taps - 1) * l.dilate);
    f.first = any ? std::min(f.first, first) : first;
    any = true;
  }
  for (int64_t i = 0; i < lines; ++i) {
    const Line l = line_of(a, makes, i);
    f.places = std::max(f.places, l.count);
    if (l.taps == 0 || l.count == 0) continue;
    const int64_t at = l.begin - f.first, last = at + std::max<int64_t>(0, (l.taps - 1) * l.dilate);
    const bool one = l.taps == 1 || l.dilate % f.move == 0;
    f.phases = std::max(f.phases, one ? at % f.move + 1 : f.move);
    f.places = std::max(f.places, whole ? last + (l.count - 1) * l.move + 1 : last / f.move + l.count);
  }
  return f;
}

inline constexpr int64_t kFrameLine = 16;  // values

struct Frame {
  FrameAxis axis[kAxes];
  int64_t gap = 0;  // behind each frame, so that those of whole ones lie an odd number of lines apart: not in the same
                    // few sets of a cache

  Frame(const Conv& c, Makes makes, bool whole = false) {
    for (int i = 0; i < kAxes; ++i) axis[i] = frame_axis(c.axis[i], makes, whole);
    const int64_t lines = (size() + kFrameLine - 1) / kFrameLine;
    if (whole) gap = (lines | 1) * kFrameLine - size();
  }
  int64_t phase_size() const { return axis[0].places * axis[1].places * axis[2].places; }
  int64_t phases() const { return axis[0].phases * axis[1].phases * axis[2].phases; }
  int64_t size() const { return phases() * phase_size() + gap; }
  int64_t slab() const { return axis[1].places * axis[2].places; }
  int64_t pitch() const { return axis[2].places; }
  // Where the places of a tap begin, of which line[i] reads at `begin[i]` first.
  int64_t offset(const int64_t (&begin)[kAxes]) const {
    int64_t phase = 0, at = 0;
    for (int i = 0; i < kAxes; ++i) {
      const int64_t from = begin[i] - axis[i].first;
      phase = phase * axis[i].phases + from % axis[i].move;
      at = at * axis[i].places + from / axis[i].move;
    }
    return phase * phase_size() + at;
  }
};

inline constexpr int64_t kSlack = 64;                     // values behind the last frame that a tile may read
inline constexpr int64_t kBlockChannels = 8;              // weights are padded to a multiple, enough for every level
inline constexpr int64_t kFrameBytes = int64_t{8} << 20;  // of images that are framed before they are computed
inline constexpr int64_t kSmallFrame = int64_t{96} << 10, kManyFrames = 16;

// Scratch of a pass, in bytes, each a multiple of 64.
struct Room {
  int64_t weights = 0, offsets = 0, bias = 0, frames = 0;
  int64_t images = 1;  // that are framed at a time
  bool own = false;    // each thread frames a group of an image and computes it

  int64_t bytes() const { return weights + offsets + bias + frames; }
};
inline int64_t padded_bytes(int64_t bytes) { return (bytes + 63) / 64 * 64; }

inline void room_for_frames(Room& r, const Conv& c, int64_t channels, int64_t size, int64_t unit, bool shared = false) {
  const int64_t one = channels * size * unit, image = std::max<int64_t>(1, c.groups * one);
  r.own = !shared && one <= kSmallFrame && c.n * c.groups >= kManyFrames;
  r.images = std::clamp<int64_t>(kFrameBytes / image, 1, std::max<int64_t>(1, c.n));
  r.frames = r.own ? max_threads() * padded_bytes(one + kSlack * unit) : padded_bytes(r.images * image + kSlack * unit);
}

// The most of that, too, for smaller frames of fewer images.
inline int64_t frames_up_to(const Conv& c, int64_t channels, int64_t size, int64_t unit) {
  const int64_t one = channels * size * unit, image = std::max<int64_t>(1, c.groups * one);
  const int64_t several = std::min(std::max<int64_t>(1, c.n) * image, kFrameBytes);
  const int64_t shared = padded_bytes(std::max(image, several) + kSlack * unit);
  if (c.n * c.groups < kManyFrames) return shared;
  return std::max(shared, max_threads() * padded_bytes(std::min(one, kSmallFrame) + kSlack * unit));
}

// Whether the channels that a pass computes lie in the lanes of vectors, while values of the image are broadcast: then
// no place between rows is computed, and steps between places cost nothing. Else places lie in the lanes, which is
// faster where few of them are in vain.
inline constexpr int64_t kLaneChannels = 16;  // a multiple of every level's vectors
inline constexpr int64_t kShortestRow = 5, kWidestMove = 2, kFewestProducts = 32, kInVainPercent = 8;
inline int64_t lanes_for(int64_t channels) { return (channels + kLaneChannels - 1) / kLaneChannels * kLaneChannels; }
inline bool in_lanes(const Conv& c, Makes makes, int64_t unit) {
  const int64_t made = made_channels(c, makes), lanes = lanes_for(made);
  if (unit != 4 || made < kLaneChannels || lanes - made > lanes / 4) return false;
  const Axis& a = c.axis[kAxes - 1];
  const bool result = makes == Makes::Result;
  const int64_t width = result ? a.out : a.in / a.stride;
  if (width < kShortestRow || read_channels(c, makes) * c.taps() < kFewestProducts) return false;
  if (result && a.stride > 1) return a.stride <= kWidestMove;
  const Frame frame(c, makes);
  const int64_t height = result ? c.axis[1].out : c.axis[1].in / c.axis[1].stride;
  const int64_t computed = lanes_for((height - 1) * frame.pitch() + width);
  return (computed - height * width) * 100 >= height * width * kInVainPercent;
}

inline Room room_of_pass(const Conv& c, Makes makes, int64_t unit) {
  Room r;
  const int64_t reads = read_channels(c, makes), made = made_channels(c, makes);
  const bool wide = in_lanes(c, makes, unit);
  const int64_t blocks = wide        ? lanes_for(made)
                         : made <= 2 ? made
                                     : (made + kBlockChannels - 1) / kBlockChannels * kBlockChannels;
  r.weights = padded_bytes(c.groups * blocks * reads * c.taps() * unit);
  r.offsets = padded_bytes(reads * c.taps() * 8);
  r.bias = padded_bytes(c.groups * blocks * unit);
  room_for_frames(r, c, reads, Frame(c, makes, wide).size(), unit, wide);
  return r;
}

// Room for a pass at these sizes and at all smaller ones. Frames grow with every size, but the way in which they are
// used changes back and forth: each thread's own, many of them at a time, and split or whole.
inline Room room_of_passes_up_to(const Conv& c, Makes makes, int64_t unit) {
  const int64_t reads = read_channels(c, makes), blocks = lanes_for(made_channels(c, makes));
  Room r;
  r.weights = padded_bytes(c.groups * blocks * reads * c.taps() * unit);
  r.offsets = padded_bytes(reads * c.taps() * 8);
  r.bias = padded_bytes(c.groups * blocks * unit);
  const int64_t size = std::max(Frame(c, makes).size(), unit == 4 ? Frame(c, makes, true).size() : 0);
  r.frames = frames_up_to(c, reads, size, unit);
  return r;
}

// The gradient of weights: sums of [tap][channel] lanes for parts of the images, and packed results of a thread.
// `up_to`: for all smaller sizes, too.
inline constexpr int64_t kSumPlaces = 256, kWidestLanes = 64, kParts = 8;
struct FilterRoom {
  Room room;           // `weights` are the sums
  int64_t parts = 1;   // of the images, whose sums are apart
  int64_t lanes = 0;   // channels of the result, padded
  int64_t packed = 0;  // bytes for each thread

  int64_t bytes() const { return room.bytes() + packed * max_threads(); }
};
inline FilterRoom room_of_filter(const Conv& c, int64_t unit, bool up_to = false) {
  FilterRoom f;
  f.lanes = (c.outs + kWidestLanes - 1) / kWidestLanes * kWidestLanes;
  f.parts = std::clamp<int64_t>(c.n, 1, kParts);
  f.room.weights = padded_bytes(f.parts * c.groups * f.lanes * c.ins * c.taps() * unit);
  f.room.offsets = padded_bytes(c.ins * c.taps() * 8);
  const int64_t size = Frame(c, Makes::Result).size();
  if (up_to)
    f.room.frames = frames_up_to(c, c.ins, size, unit);
  else
    room_for_frames(f.room, c, c.ins, size, unit);
  f.packed = padded_bytes((kSumPlaces * kWidestLanes + 2 * kSumPlaces) * unit);
  return f;
}

}  // namespace baracuda::conv
