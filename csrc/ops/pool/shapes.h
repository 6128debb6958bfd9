// What pooling asks of its tensors.
#pragma once
#include "core/shapes.h"
#include "ops/pool/skus.h"

namespace baracuda::pool {

using Tensor = Shapes::Tensor;

inline constexpr int64_t kMost = int64_t{1} << 31;

// The same images and channels, with one to three axes of sizes below 2^31, at least one place each.
inline bool images(Shapes& s, const Tensor& image, const Tensor& result, int param) {
  const int rank = image.rank();
  image.ranks(3, kAxes + 2);
  result.ranks(rank);
  if (rank < 3 || rank > kAxes + 2 || result.rank() != rank) return false;
  bool sizes = true;
  for (int i = 2; i < rank; ++i)
    sizes &= image.at(i) >= 1 && image.at(i) < kMost && result.at(i) >= 0 && result.at(i) < kMost;
  return s.want(sizes, param, "axes of 1 to 2^31 - 1 places") &&
         s.want(image.at(0) == result.at(0) && image.at(1) == result.at(1), param, "as many images and channels");
}

// Windows of a size.
inline void windows(Shapes& s, const Tensor& image, const Tensor& result, int param, const int64_t* dilation,
                    int64_t ceil_mode) {
  const int64_t* given = s.slots();
  if (!images(s, image, result, param)) return;
  double taps = 1;
  for (int i = 0; i < kAxes; ++i) {
    const bool there = i < image.rank() - 2;
    const int64_t kernel = given[i], stride = given[kAxes + i], low = given[2 * kAxes + i], high = given[3 * kAxes + i];
    const int64_t by = dilation ? dilation[i] : 1, most = there ? kMost : 2, most_padding = there ? kMost : 1;
    const bool sound = kernel >= 1 && kernel < most && stride >= 1 && stride < most && by >= 1 && by < most &&
                       low >= 0 && low < most_padding && high >= 0 && high < most_padding;
    if (!s.attribute(sound, "kernel", "numbers below 2^31, kernel, stride and dilation at least 1, padding at least 0"))
      return;
    taps *= static_cast<double>(kernel);
    if (!there) continue;
    const int64_t reach = (kernel - 1) * by, rest = image.at(2 + i) + low + high - reach - 1;
    const int64_t more = ceil_mode ? stride - 1 : 0;  // how far windows may end behind the padding
    int64_t places = (rest + more) / stride + 1;
    if (ceil_mode && (places - 1) * stride >= image.at(2 + i) + low) --places;
    s.want(rest + more >= 0 && result.at(2 + i) == places, param,
           "as many places along each axis as there are windows");
  }
  s.attribute(taps < 0x1p31, "kernel", "fewer than 2^31 taps");
}

template <class Attrs>
void sized(Shapes& s, const Tensor& image, const Tensor& result, int param) {
  const Attrs a = s.attrs<Attrs>();
  s.flag(a.ceil_mode, "ceil_mode");
  if constexpr (std::is_same_v<Attrs, MaxAttrs>) {
    windows(s, image, result, param, s.slots() + kDilation, a.ceil_mode);
  } else {
    s.flag(a.count_include_pad, "count_include_pad");
    windows(s, image, result, param, nullptr, a.ceil_mode);
  }
}

template <Windows kWindows>
void max_shapes(Shapes& s) {
  const auto x = s.in(MaxArgs::x), y = s.out(MaxArgs::y);
  s.may_out(MaxArgs::indices, Element::I64).is(y);
  if constexpr (kWindows == Windows::Sized)
    sized<MaxAttrs>(s, x, y, MaxArgs::y);
  else
    images(s, x, y, MaxArgs::y);
}
template <Windows kWindows>
void max_backward_shapes(Shapes& s) {
  using Args = MaxBackwardArgs;
  const auto dy = s.in(Args::dy), dx = s.out(Args::dx);
  s.in(Args::indices, Element::I64).is(dy);
  if constexpr (kWindows == Windows::Sized)
    sized<MaxAttrs>(s, dx, dy, Args::dy);
  else
    images(s, dx, dy, Args::dy);
}
template <Windows kWindows>
void mean_shapes(Shapes& s) {
  const auto x = s.in(MeanArgs::x), y = s.out(MeanArgs::y);
  if constexpr (kWindows == Windows::Sized)
    sized<MeanAttrs>(s, x, y, MeanArgs::y);
  else
    images(s, x, y, MeanArgs::y);
}
template <Windows kWindows>
void mean_backward_shapes(Shapes& s) {
  using Args = MeanBackwardArgs;
  const auto dy = s.in(Args::dy), dx = s.out(Args::dx);
  if constexpr (kWindows == Windows::Sized)
    sized<MeanAttrs>(s, dx, dy, Args::dy);
  else
    images(s, dx, dy, Args::dy);
}

inline ShapeRule shapes_of(const Row& row) {
  const std::string_view op = row.op;
  const bool back = row.direction == Direction::Backward;
  if (op == "max_pool") return back ? max_backward_shapes<Windows::Sized> : max_shapes<Windows::Sized>;
  if (op == "adaptive_max_pool") return back ? max_backward_shapes<Windows::Parts> : max_shapes<Windows::Parts>;
  if (op == "avg_pool") return back ? mean_backward_shapes<Windows::Sized> : mean_shapes<Windows::Sized>;
  return back ? mean_backward_shapes<Windows::Parts> : mean_shapes<Windows::Parts>;
}

}  // namespace baracuda::pool
