// A convolution's sizes, and the lines that its passes go along. Three tensors belong to it: an image x [n, groups *
// ins, in...], a result y [n, groups * outs, out...] and weights [groups * outs, ins, taps...], tied by in = out *
// stride + tap * dilation - low. conv computes y, the gradient of x and conv_transpose compute x, the gradient of
// weights sums over both.
#pragma once
#include <algorithm>
#include <cstddef>
#include <numeric>

#include "core/args.h"
#include "core/attrs.h"
#include "core/row.h"

namespace baracuda::conv {

BCU_ATTRS(ConvAttrs, (i64, stride0), (i64, stride1), (i64, stride2), (i64, low0), (i64, low1), (i64, low2),
          (i64, high0), (i64, high1), (i64, high2), (i64, dilation0), (i64, dilation1), (i64, dilation2), (i64, groups))
BCU_ARGS(ConvArgs, (x, weight, bias, y), ())
BCU_ARGS(ConvBackwardArgs, (dy, x, weight, dx, dweight, dbias), ())

// A convolution with what may come behind it: a batch norm by running statistics, and relu.
BCU_ATTRS(ConvNormAttrs, (i64, stride0), (i64, stride1), (i64, stride2), (i64, low0), (i64, low1), (i64, low2),
          (i64, high0), (i64, high1), (i64, high2), (i64, dilation0), (i64, dilation1), (i64, dilation2), (i64, groups),
          (i64, relu))
BCU_ARGS(ConvNormArgs, (x, weight, bias, mean, var, scale, shift, y), (eps))
static_assert(offsetof(ConvNormAttrs, relu) == sizeof(ConvAttrs));

inline constexpr int kAxes = 3;

struct Axis {
  int64_t in = 1, out = 1, taps = 1, stride = 1, low = 0, dilation = 1;
};

struct Conv {
  int64_t n = 0, groups = 1, ins = 0, outs = 0;  // channels of a group
  Axis axis[kAxes];                              // those that a shape lacks, in front, have size 1

  int64_t taps() const { return axis[0].taps * axis[1].taps * axis[2].taps; }
  int64_t places() const { return axis[0].out * axis[1].out * axis[2].out; }
};

// Of tensors or of what a question says about them; the output of a transposed one is its image.
template <class T>
Conv conv_of(const ConvAttrs& attrs, const T& image, const T& weight, const T& result) {
  Conv c;
  c.n = image.shape[0], c.groups = attrs.groups, c.ins = weight.shape[1], c.outs = weight.shape[0] / c.groups;
  const int spatial = image.rank - 2;
  for (int i = 0; i < spatial; ++i) {
    Axis& a = c.axis[kAxes - spatial + i];
    a.in = image.shape[2 + i], a.out = result.shape[2 + i], a.taps = weight.shape[2 + i];
    a.stride = i == 0 ? attrs.stride0 : i == 1 ? attrs.stride1 : attrs.stride2;
    a.low = i == 0 ? attrs.low0 : i == 1 ? attrs.low1 : attrs.low2;
    a.dilation = i == 0 ? attrs.dilation0 : i == 1 ? attrs.dilation1 : attrs.dilation2;
  }
  return c;
}

// Which tensor a pass computes, from the other one and the weights.
enum class Makes { Result, Image };

// One axis of a pass: outputs at first + j * step, j < count, read at begin + j * move + t * dilate through the taps
// tap + t * tap_step, t < taps. A pass to the image is one for each remainder of a position by the stride: then every
// position reads through the same taps, and no zero between results is multiplied.
struct Line {
  int64_t count, first, step, move, begin, taps, tap, tap_step, dilate;
};
inline int64_t lines_of(const Axis& a, Makes makes) {
  return makes == Makes::Result ? 1 : std::max<int64_t>(1, std::min(a.stride, a.in));
}
inline Line line_of(const Axis& a, Makes makes, int64_t remainder) {
  if (makes == Makes::Result) return {a.out, 0, 1, a.stride, -a.low, a.taps, 0, 1, a.dilation};
  const int64_t common = std::gcd(a.stride, a.dilation), every = a.stride / common;
  int64_t tap = 0;
  const int64_t from = remainder + a.low;
  while (tap < std::min(every, a.taps) && (from - tap * a.dilation) % a.stride != 0) ++tap;
  const int64_t taps = tap < std::min(every, a.taps) ? (a.taps - tap + every - 1) / every : 0;
  const int64_t count = (a.in - remainder + a.stride - 1) / a.stride;
  return {count,
          remainder,
          a.stride,
          1,
          taps ? (from - tap * a.dilation) / a.stride : 0,
          taps,
          tap,
          every,
          -(a.dilation / common)};
}

// One pass: an axis' line each.
struct Pass {
  Line line[kAxes];

  int64_t taps() const { return line[0].taps * line[1].taps * line[2].taps; }
  bool empty() const { return line[0].count == 0 || line[1].count == 0 || line[2].count == 0; }
};
inline int64_t passes_of(const Conv& c, Makes makes) {
  int64_t n = 1;
  for (const Axis& a : c.axis) n *= lines_of(a, makes);
  return n;
}
inline Pass pass_of(const Conv& c, Makes makes, int64_t index) {
  Pass p;
  for (int i = kAxes - 1; i >= 0; --i) {
    const int64_t lines = lines_of(c.axis[i], makes);
    p.line[i] = line_of(c.axis[i], makes, index % lines);
    index /= lines;
  }
  return p;
}

// Channels that a pass reads, and that it computes, in each group.
inline int64_t read_channels(const Conv& c, Makes makes) { return makes == Makes::Result ? c.ins : c.outs; }
inline int64_t made_channels(const Conv& c, Makes makes) { return makes == Makes::Result ? c.outs : c.ins; }

}  // namespace baracuda::conv
