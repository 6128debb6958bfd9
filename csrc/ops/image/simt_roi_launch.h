// Launches means over regions and their gradient on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/image/simt_roi.h"
#include "ops/image/simt_types.h"
#include "ops/image/skus.h"
#include "simt/index_launch.h"

namespace baracuda::image {

// Checks the regions, then a thread for each element of `made`; of `read` the channel is known, the rest is looked up.
template <class C, class Body>
Status submit_roi(const Launch& launch, const Regions& r, int64_t images, const TensorView& read, int param,
                  const TensorView& made) {
  const TensorView& rois = launch[param];
  const Planes from(read), to(made);
  RoiParams p{};
  std::copy_n(r.side, 2, p.side);
  p.images = images, p.regions = rois.shape[0];
  p.roi_stride = rois.shape[0] > 1 ? rois.strides[0] : 0, p.roi_number = rois.strides[1];
  p.read_outer = from.outer, p.read_row = from.stride[1], p.read_column = from.stride[2];
  p.scale = simt::bits_of(static_cast<C>(r.scale));
  p.made = made.data, p.read = read.data, p.rois = rois.data;
  p.fault = simt::fault_of(launch), p.row = launch.row;
  p.element = static_cast<int32_t>(launch.element), p.made_element = static_cast<int32_t>(made.element);
  p.tensor = param;
  if (p.regions > 0) {
    using Check = CheckRois<C>;
    const Status s = simt::submit<Check>(launch, {simt::blocks_for(p.regions, Check::kThreads)}, Check::kThreads, p);
    if (s != Status::Ok) return s;
  }
  IterationSpace space;
  std::array<Operand, kRoiWalked> steps{};
  const auto add = [&](int64_t size, int64_t stride, int64_t read_stride, int coordinate) {
    steps[kRoiMade].strides[space.rank] = stride, steps[kRoiRead].strides[space.rank] = read_stride;
    if (coordinate >= 0) steps[coordinate].strides[space.rank] = 1;
    space.shape[space.rank++] = size;
  };
  add(made.shape[0], to.outer, 0, kRoiFirst);
  add(made.shape[1], to.channel, from.channel, -1);
  add(made.shape[2], to.stride[1], 0, kRoiFirst + 1);
  add(made.shape[3], to.stride[2], 0, kRoiFirst + 2);
  p.space = simt::space_over(space, steps);
  if (p.space.count == 0) return Status::Ok;
  return simt::submit<Body>(launch, {simt::blocks_for(p.space.count, Body::kThreads)}, Body::kThreads, p);
}

}  // namespace baracuda::image

namespace baracuda {

template <>
struct SimtKernel<image::RoiAlign> {
  static Status run(const Launch& launch) {
    using Args = image::RoiAlignArgs;
    const TensorView &x = launch[Args::x], &y = launch[Args::y];
    return image::with_sample_type(launch.element, [&](auto c) {
      using C = decltype(c);
      const image::Regions r = image::regions_of(launch, x, y);
      return image::submit_roi<C, image::RoiMean<C>>(launch, r, x.shape[0], x, Args::rois, y);
    });
  }
};

template <>
struct SimtKernel<image::RoiAlignBackward> {
  static Status run(const Launch& launch) {
    using Args = image::RoiAlignBackwardArgs;
    const TensorView &dy = launch[Args::dy], &dx = launch[Args::dx];
    return image::with_sample_type(launch.element, [&](auto c) {
      using C = decltype(c);
      const image::Regions r = image::regions_of(launch, dx, dy);
      return image::submit_roi<C, image::RoiGradient<C>>(launch, r, dx.shape[0], dy, Args::rois, dx);
    });
  }
};

template <>
struct SimtKernel<image::RoiPool> {
  static Status run(const Launch& launch) {
    using Args = image::RoiPoolArgs;
    const TensorView &x = launch[Args::x], &indices = launch[Args::indices];
    return image::with_sample_type(launch.element, [&](auto c) {
      using C = decltype(c);
      const image::Regions r = image::pooled_regions(launch);
      using Value = image::RoiMost<C>;
      using Place = image::RoiPlace<C>;
      const Status s = image::submit_roi<C, Value>(launch, r, x.shape[0], x, Args::rois, launch[Args::y]);
      if (s != Status::Ok || !indices.present()) return s;
      return image::submit_roi<C, Place>(launch, r, x.shape[0], x, Args::rois, indices);
    });
  }
};

}  // namespace baracuda
