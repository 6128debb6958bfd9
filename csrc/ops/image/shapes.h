// What the ops of images ask of their tensors.
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
      sound = sound && (!rounded || (den & (den - 1)) == 0);  // den is at least 1 here
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

// x or dx; grid or dgrid; y or dy.
inline void sampled(Shapes& s, const Tensor& image, const Tensor& grid, const Tensor& result, int param) {
  const SampleAttrs a = s.attrs<SampleAttrs>();
  s.attribute(a.mode >= 0 && a.mode <= kCubic, "mode", "0 to 2");
  s.attribute(a.padding >= 0 && a.padding <= kReflection, "padding", "0 to 2");
  s.flag(a.align_corners, "align_corners");
  const int rank = image.rank();
  image.ranks(3, kAxes + 2), grid.ranks(rank), result.ranks(rank);
  if (rank < 3 || rank > kAxes + 2 || grid.rank() != rank || result.rank() != rank) return;
  bool sizes = grid.at(rank - 1) == rank - 2;
  for (int i = 2; i < rank; ++i) {
    sizes &= image.at(i) >= 1 && image.at(i) < kMost && grid.at(i - 1) >= 0 && grid.at(i - 1) < kMost;
    sizes &= result.at(i) == grid.at(i - 1);
  }
  sizes &= image.at(0) == grid.at(0) && image.at(0) == result.at(0) && image.at(1) == result.at(1);
  s.want(sizes, param, "[images, results..., axes] of as many images, results below 2^30, and axes of 1 to 2^30 - 1");
}
inline void sample_shapes(Shapes& s) {
  const auto x = s.in(SampleArgs::x), grid = s.in(SampleArgs::grid), y = s.out(SampleArgs::y);
  sampled(s, x, grid, y, SampleArgs::grid);
}
inline void sample_backward_shapes(Shapes& s) {
  using Args = SampleBackwardArgs;
  const auto dy = s.in(Args::dy), x = s.in(Args::x), grid = s.in(Args::grid);
  s.out(Args::dx).is(x);
  s.out(Args::dgrid).is(grid);
  sampled(s, x, grid, dy, Args::grid);
}

inline void fold_shapes(Shapes& s) {
  const auto x = s.in(FoldArgs::x), y = s.out(FoldArgs::y);
  const int rank = y.rank(), spatial = rank - 2;
  x.ranks(3), y.ranks(3, kAxes + 2);
  if (rank < 3 || rank > kAxes + 2 || x.rank() != 3) return;
  constexpr int64_t kEnd = int64_t{1} << 31;
  bool sizes = true;
  for (int i = 0; i < spatial; ++i) sizes &= y.at(2 + i) >= 1 && y.at(2 + i) < kEnd;
  if (!s.want(sizes, FoldArgs::y, "axes of 1 to 2^31 - 1 places")) return;
  const int64_t* given = s.slots();
  double taps = 1;
  for (int i = 0; i < kAxes; ++i) {
    const bool there = i < spatial;
    for (int k = 0; k < 5; ++k) {
      const int64_t v = given[kAxes * k + i], least = !there || k == 2 || k == 3 ? 0 : 1;
      const char* const want = "numbers below 2^31, padding at least 0, the others at least 1; 0 of no axis";
      if (!s.attribute(v >= least && v < (there ? kEnd : 1), "kernel", want)) return;
    }
    if (there) taps *= static_cast<double>(given[i]);
  }
  if (!s.attribute(taps < 0x1p31, "kernel", "fewer than 2^31 taps")) return;
  const Fold f = fold_of(given, spatial, y.sizes().size + 2);
  double windows = 1;
  for (const pool::Axis& a : f.axis) windows *= static_cast<double>(a.out);
  if (!s.want(windows >= 1 && windows < 0x1p62, FoldArgs::y, "windows along each axis")) return;
  s.want(static_cast<double>(y.at(1)) * taps < 0x1p62 && x.at(0) == y.at(0) && x.at(1) == y.at(1) * f.taps() &&
             x.at(2) == f.windows(),
         FoldArgs::x, "[images, channels taps, windows]");
}

inline void nms_shapes(Shapes& s) {
  const NmsAttrs a = s.attrs<NmsAttrs>();
  s.attribute(std::isfinite(a.iou_threshold), "iou_threshold", "a finite number");
  const auto boxes = s.in(NmsArgs::boxes), order = s.in(NmsArgs::order, s.aux());
  boxes.ranks(2), order.ranks(1);
  s.may_in(NmsArgs::groups, s.aux()).is(order);
  s.out(NmsArgs::keep, Element::Bool).is(order);
  s.want(boxes.at(1) == 4 && boxes.at(0) == order.at(0), NmsArgs::boxes, "[boxes, 4], as many as order has");
}

// x or dx; y or dy.
inline void regions(Shapes& s, const Tensor& image, const Tensor& rois, const Tensor& result, int param, double scale) {
  s.attribute(std::isfinite(scale), "spatial_scale", "a finite number");
  image.ranks(4), rois.ranks(2), result.ranks(4);
  if (image.rank() != 4 || rois.rank() != 2 || result.rank() != 4) return;
  bool sizes = rois.at(1) == 5 && rois.at(0) == result.at(0) && image.at(1) == result.at(1);
  for (int i = 2; i < 4; ++i)
    sizes &= image.at(i) >= 1 && image.at(i) < kMost && result.at(i) >= 1 && result.at(i) < 65536;
  s.want(sizes, param, "[regions, 5], images of 1 to 2^30 - 1 places, and 1 to 65535 bins along each axis");
}
inline void aligned_regions(Shapes& s, const Tensor& image, const Tensor& rois, const Tensor& result, int param) {
  const RoiAlignAttrs a = s.attrs<RoiAlignAttrs>();
  s.attribute(a.sampling_ratio >= 0 && a.sampling_ratio <= 1024, "sampling_ratio", "0 to 1024");
  s.flag(a.aligned, "aligned");
  regions(s, image, rois, result, param, a.spatial_scale);
}
inline void roi_pool_shapes(Shapes& s) {
  using Args = RoiPoolArgs;
  const auto x = s.in(Args::x), rois = s.in(Args::rois), y = s.out(Args::y);
  s.may_out(Args::indices, Element::I64).is(y);
  regions(s, x, rois, y, Args::rois, s.attrs<RoiPoolAttrs>().spatial_scale);
}
inline void roi_align_shapes(Shapes& s) {
  using Args = RoiAlignArgs;
  const auto x = s.in(Args::x), rois = s.in(Args::rois), y = s.out(Args::y);
  aligned_regions(s, x, rois, y, Args::rois);
}
inline void roi_align_backward_shapes(Shapes& s) {
  using Args = RoiAlignBackwardArgs;
  const auto dy = s.in(Args::dy), rois = s.in(Args::rois), dx = s.out(Args::dx);
  aligned_regions(s, dx, rois, dy, Args::rois);
}

inline ShapeRule shapes_of(const Row& row) {
  const bool back = row.direction == Direction::Backward;
  const std::string_view op = row.op;
  if (op == "grid_sample") return back ? sample_backward_shapes : sample_shapes;
  if (op == "roi_align") return back ? roi_align_backward_shapes : roi_align_shapes;
  if (op == "roi_pool") return roi_pool_shapes;
  if (op == "nms") return nms_shapes;
  if (op == "fold") return fold_shapes;
  if (op == "resize") return back ? resize_backward_shapes<ResizeAttrs> : resize_shapes<ResizeAttrs>;
  return back ? resize_backward_shapes<NearestAttrs> : resize_shapes<NearestAttrs>;
}

}  // namespace baracuda::image
