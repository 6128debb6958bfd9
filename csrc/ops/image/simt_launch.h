// Launches resizing and its gradients on a GPU; the other ops are beside it.
#pragma once
#include "backends/simt/family.h"
#include "ops/conv/planes.h"
#include "ops/image/simt.h"
#include "ops/image/simt_fold_launch.h"
#include "ops/image/simt_nms_launch.h"
#include "ops/image/simt_roi_launch.h"
#include "ops/image/simt_sample_launch.h"
#include "ops/image/skus.h"
#include "simt/space_launch.h"

namespace baracuda::image {

// A thread for each element of `made`, neighbours next to each other in memory; `read` is looked at by planes.
template <class Params>
void walk(Params& p, const TensorView& made, const TensorView& read) {
  const conv::Planes to(made), from(read);
  IterationSpace space;
  std::array<Operand, kWalked> steps{};
  auto add = [&](int64_t size, int64_t conv::Planes::* stride) {
    const int d = space.rank++;
    space.shape[d] = size;
    steps[kMade].strides[d] = to.*stride, steps[kRead].strides[d] = from.*stride;
  };
  const bool last = to.channels_last();
  add(made.shape[0], &conv::Planes::outer);
  if (!last) add(made.shape[1], &conv::Planes::channel);
  for (int i = 0; i < kAxes; ++i) {
    const int d = space.rank++;
    space.shape[d] = to.size[i];
    steps[kMade].strides[d] = to.stride[i], steps[kPlace + i].strides[d] = 1;
    p.stride[i] = from.stride[i];
  }
  if (last) add(made.shape[1], &conv::Planes::channel);
  p.space = simt::space_over(space, steps);
  p.made = to.data, p.read = from.data;
  p.made_element = static_cast<int32_t>(made.element), p.read_element = static_cast<int32_t>(read.element);
}

template <class C, class Body>
Status submit_resize(const Launch& launch, const Resize& r, const TensorView& read, const TensorView& made) {
  using Fill = FillTaps<C>;
  if (made.numel() == 0) return Status::Ok;
  typename Fill::Params fill{};
  ResizeParams<C> p{};
  lay_out(r, fill.taps, reinterpret_cast<uintptr_t>(launch.workspace));
  for (int i = 0; i < kAxes; ++i) {
    fill.map[i] = r.map[i], p.taps[i] = fill.taps[i];
    fill.count += fill.taps[i].pitch + (r.back ? fill.taps[i].in : 0);
  }
  fill.a = simt::bits_of(static_cast<C>(r.a));
  fill.kind = r.filter.kind, fill.rounded = r.filter.rounded, fill.antialias = r.filter.antialias;
  const Status status =
      simt::submit<Fill>(launch, {simt::blocks_for(fill.count, Fill::kThreads)}, Fill::kThreads, fill);
  if (status != Status::Ok) return status;
  walk(p, made, read);
  return simt::submit<Body>(launch, {simt::blocks_for(p.space.count, Body::kThreads)}, Body::kThreads, p);
}

}  // namespace baracuda::image

namespace baracuda {

template <class Attrs>
struct SimtKernel<image::Resized<Attrs>> {
  static Status run(const Launch& launch) {
    using namespace image;
    const TensorView &x = launch[ResizeArgs::x], &y = launch[ResizeArgs::y];
    const Resize r = resize_of<Attrs>(launch, x, y, false);
    if constexpr (std::is_same_v<Attrs, NearestAttrs>) {
      if (kSigned.has(launch.element)) return submit_resize<float, NearestBody<int64_t>>(launch, r, x, y);
      if (!is_float(launch.element)) return submit_resize<float, NearestBody<uint64_t>>(launch, r, x, y);
#if BCU_HAS_F64
      if (launch.element == Element::F64) return submit_resize<float, NearestBody<double>>(launch, r, x, y);
#endif
      return submit_resize<float, NearestBody<float>>(launch, r, x, y);
    } else {
#if BCU_HAS_F64
      if (launch.element == Element::F64) return submit_resize<double, ResizeBody<double, false>>(launch, r, x, y);
#endif
      return submit_resize<float, ResizeBody<float, false>>(launch, r, x, y);
    }
  }
};

template <class Attrs>
struct SimtKernel<image::ResizedBackward<Attrs>> {
  static Status run(const Launch& launch) {
    using namespace image;
    const TensorView &dy = launch[ResizeBackwardArgs::dy], &dx = launch[ResizeBackwardArgs::dx];
    const Resize r = resize_of<Attrs>(launch, dx, dy, true);
#if BCU_HAS_F64
    if (launch.element == Element::F64) return submit_resize<double, ResizeBody<double, true>>(launch, r, dy, dx);
#endif
    return submit_resize<float, ResizeBody<float, true>>(launch, r, dy, dx);
  }
};

}  // namespace baracuda
