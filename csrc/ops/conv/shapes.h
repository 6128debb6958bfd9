// What convolutions and their gradients ask of their tensors.
#pragma once
#include "core/shapes.h"
#include "ops/conv/skus.h"

namespace baracuda::conv {

using Tensor = Shapes::Tensor;

inline constexpr int64_t kMostStep = int64_t{1} << 31, kFar = int64_t{1} << 60;

// (n - 1) * step, or kFar where that is more.
inline int64_t reach(int64_t n, int64_t step) { return n <= 1 ? 0 : n - 1 > kFar / step ? kFar : (n - 1) * step; }

// One axis: the size of what is computed follows. Returns the image's with its padding.
template <Makes kMakes>
int64_t padded_axis(Shapes& s, const Axis& a, int64_t high, int param) {
  const int64_t kernel = reach(a.taps, a.dilation) + 1;
  int64_t padded = a.in + a.low + high;
  if (kMakes == Makes::Result) {
    const int64_t rest = padded - kernel, least = s.real() ? 0 : -a.stride;
    const int64_t made = rest < 0 ? 0 : rest / a.stride + 1;
    s.want(rest >= least && a.out == made, param, "(size + low + high - dilation (taps - 1) - 1) / stride + 1 places");
  } else {
    padded = (a.out == 0 ? -a.stride : reach(a.out, a.stride)) + kernel;
    const bool some = !s.real() || (a.out > 0 && a.in > 0);
    s.want(some && padded < kFar && a.in == padded - a.low - high, param,
           "(size - 1) stride + dilation (taps - 1) + 1 - low - high places");
  }
  return padded;
}

// The attributes of an axis, or of one that is not there.
template <Makes kMakes>
bool sound(Shapes& s, const Axis& a, int64_t high, bool there) {
  const int64_t most = there ? kMostStep : 2, least = !there ? 0 : kMakes == Makes::Image ? -kMostStep : 0;
  const int64_t most_low = there ? kMostStep : 1;
  return s.attribute(a.stride >= 1 && a.stride < most, "stride", "1 <= stride < 2^31, 1 for axes that are not there") &&
         s.attribute(a.dilation >= 1 && a.dilation < most, "dilation",
                     "1 <= dilation < 2^31, 1 for axes that are not there") &&
         s.attribute(a.low >= 0 && a.low < most_low, "low", "0 <= low < 2^31, 0 for axes that are not there") &&
         s.attribute(high >= least && high < most_low, "high", "0 <= high < 2^31, 0 for axes that are not there");
}

// The weights are [channels of the result, those of the image in a group, taps...].
template <Makes kMakes>
void convolved(Shapes& s, const Tensor& image, const Tensor& weight, const Tensor& result, int param) {
  const ConvAttrs attrs = s.attrs<ConvAttrs>();
  const int rank = image.rank();
  image.ranks(3, kAxes + 2);
  weight.ranks(rank);
  result.ranks(rank);
  if (rank < 3 || weight.rank() != rank || result.rank() != rank) return;
  bool taps = true;
  for (int i = 0; i < rank; ++i) taps &= weight.at(i) >= 1;
  if (!s.want(taps, param, "weights of at least one channel and tap")) return;
  if (!s.attribute(attrs.groups >= 1 && attrs.groups <= weight.at(0) && weight.at(0) % attrs.groups == 0, "groups",
                   "a divisor of weight's first size"))
    return;
  const bool channels = image.at(1) == weight.at(1) * attrs.groups && result.at(1) == weight.at(0);
  if (!s.want(channels && image.at(0) == result.at(0), param, "the channels that weight has, of as many images"))
    return;
  const int64_t stride[] = {attrs.stride0, attrs.stride1, attrs.stride2}, low[] = {attrs.low0, attrs.low1, attrs.low2};
  const int64_t high[] = {attrs.high0, attrs.high1, attrs.high2};
  const int64_t dilation[] = {attrs.dilation0, attrs.dilation1, attrs.dilation2};
  double elements = static_cast<double>(image.at(0)) * static_cast<double>(std::max(image.at(1), result.at(1)));
  for (int i = 0; i < kAxes; ++i) {
    const bool there = i < rank - 2;
    Axis a{1, 1, 1, stride[i], low[i], dilation[i]};
    if (!sound<kMakes>(s, a, high[i], there)) return;
    if (!there) continue;
    a.in = image.at(2 + i), a.out = result.at(2 + i), a.taps = weight.at(2 + i);
    elements *= static_cast<double>(std::max<int64_t>(1, padded_axis<kMakes>(s, a, high[i], param)));
  }
  s.want(elements < 0x1p55, param, "fewer than 2^55 elements with all padding");
}

template <Makes kMakes>
void forward_shapes(Shapes& s) {
  using Args = ConvArgs;
  const auto x = s.in(Args::x), weight = s.in(Args::weight), y = s.out(Args::y);
  const bool makes_image = kMakes == Makes::Image;
  convolved<kMakes>(s, makes_image ? y : x, weight, makes_image ? x : y, Args::y);
  s.may_in(Args::bias).is(Sizes{y.at(1)});
}
template <Makes kMakes>
void backward_shapes(Shapes& s) {
  using Args = ConvBackwardArgs;
  const auto x = s.in(Args::x), weight = s.in(Args::weight), dy = s.in(Args::dy);
  const bool makes_image = kMakes == Makes::Image;
  convolved<kMakes>(s, makes_image ? dy : x, weight, makes_image ? x : dy, Args::dy);
  s.may_out(Args::dx).is(x);
  s.may_out(Args::dweight).is(weight);
  s.may_out(Args::dbias).is(Sizes{dy.at(1)});
}

inline void norm_shapes(Shapes& s) {
  using Args = ConvNormArgs;
  const auto x = s.in(Args::x), weight = s.in(Args::weight), y = s.out(Args::y);
  convolved<Makes::Result>(s, x, weight, y, Args::y);
  const Sizes channels{y.at(1)};
  for (const int given : {Args::mean, Args::var}) s.in(given).is(channels);
  for (const int given : {Args::bias, Args::scale, Args::shift}) s.may_in(given).is(channels);
  s.flag(s.attrs<ConvNormAttrs>().relu, "relu");
}

inline ShapeRule shapes_of(const Row& row) {
  if (std::string_view(row.op) == "conv_norm") return norm_shapes;
  const bool back = row.direction == Direction::Backward;
  if (std::string_view(row.op) == "conv") return back ? backward_shapes<Makes::Result> : forward_shapes<Makes::Result>;
  return back ? backward_shapes<Makes::Image> : forward_shapes<Makes::Image>;
}

}  // namespace baracuda::conv
