// What resizing asks of its tensors.
#pragma once
#include <cmath>

#include "core/shapes.h"
#include "ops/image/skus.h"

namespace baracuda::image {

using Tensor = Shapes::Tensor;

inline constexpr int64_t kMost = int64_t{1} << 30;
inline constexpr double kReach = 0x1p60;

// The same images and channels, with one to three axes of sizes below 2^30, at least one place each.
inline bool images(Shapes& s, const Tensor& image, const Tensor& result, int param) {
  const int rank = image.rank();
  image.ranks(3, kAxes + 2);
  result.ranks(rank);
  if (rank < 3 || rank > kAxes + 2 || result.rank() != rank) return false;
  bool sizes = true;
  for (int i = 2; i < rank; ++i)
    sizes &= image.at(i) >= 1 && image.at(i) < kMost && result.at(i) >= 1 && result.at(i) < kMost;
  return s.want(sizes, param, "axes of 1 to 2^30 - 1 places") &&
         s.want(image.at(0) == result.at(0) && image.at(1) == result.at(1), param, "as many images and channels");
}

inline void maps(Shapes& s, const Tensor& image, const Tensor& result, int param, bool rounded) {
  if (!images(s, image, result, param)) return;
  for (int i = 0; i < kAxes; ++i) {
    const int64_t start = s.slots()[i], step = s.slots()[kAxes + i], den = s.slots()[2 * kAxes + i];
    bool sound = start == 0 && step == 0 && den == 1;  // of an axis that is not there
    if (i < image.rank() - 2) {
      const double in = static_cast<double>(image.at(2 + i)), out = static_cast<double>(result.at(2 + i));
      const double far = std::fabs(static_cast<double>(start)) + out * static_cast<double>(step);
      sound = step >= 0 && den >= 1 && far < kReach && in * static_cast<double>(den) < kReach;
      sound &= static_cast<double>(den) + static_cast<double>(step) < kReach / 8;
      sound &= !rounded || (den & (den - 1)) == 0;
    }
    const char* want = "step >= 0, den >= 1 (a power of 2 where rounded), and positions below 2^60 / den";
    if (!s.attribute(sound, "den", want)) return;
  }
}

template <class Attrs>
void resized(Shapes& s, const Tensor& image, const Tensor& result, int param) {
  const Attrs a = s.attrs<Attrs>();
  if constexpr (std::is_same_v<Attrs, NearestAttrs>) {
    s.flag(a.rounded, "rounded");
    maps(s, image, result, param, a.rounded != 0);
  } else {
    s.flag(a.cubic, "cubic"), s.flag(a.antialias, "antialias");
    s.attribute(std::fabs(a.a) <= 2, "a", "a number from -2 to 2");
    maps(s, image, result, param, false);
  }
}
template <class Attrs>
void resize_shapes(Shapes& s) {
  const auto x = s.in(ResizeArgs::x), y = s.out(ResizeArgs::y);
  resized<Attrs>(s, x, y, ResizeArgs::y);
}
template <class Attrs>
void resize_backward_shapes(Shapes& s) {
  using Args = ResizeBackwardArgs;
  const auto dy = s.in(Args::dy), dx = s.out(Args::dx);
  resized<Attrs>(s, dx, dy, Args::dy);
}

inline ShapeRule shapes_of(const Row& row) {
  const bool back = row.direction == Direction::Backward;
  if (std::string_view(row.op) == "resize")
    return back ? resize_backward_shapes<ResizeAttrs> : resize_shapes<ResizeAttrs>;
  return back ? resize_backward_shapes<NearestAttrs> : resize_shapes<NearestAttrs>;
}

}  // namespace baracuda::image
