// Launches the sum of windows on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/image/simt_fold.h"
#include "ops/image/skus.h"
#include "simt/space_launch.h"

namespace baracuda::image {

template <class C>
Status submit_fold(const Launch& launch, const TensorView& x, const TensorView& y) {
  const Fold fold = fold_of(launch.attrs, y.rank - 2, y.shape + 2);
  const Planes made(y);
  FoldParams p{};
  std::copy_n(fold.axis, kAxes, p.axis);
  p.tap = x.shape[1] > 1 ? x.strides[1] : 0, p.window = x.shape[2] > 1 ? x.strides[2] : 0;
  IterationSpace space;
  std::array<Operand, kFoldWalked> steps{};
  const auto add = [&](int64_t size, int64_t to, int64_t from) {
    steps[kFolded].strides[space.rank] = to, steps[kColumns].strides[space.rank] = from;
    space.shape[space.rank++] = size;
  };
  add(y.shape[0], made.outer, x.shape[0] > 1 ? x.strides[0] : 0);
  add(y.shape[1], made.channel, p.tap * fold.taps());
  for (int i = 0; i < kAxes; ++i) {
    steps[kFoldPlace + i].strides[space.rank] = 1;
    add(made.size[i], made.stride[i], 0);
  }
  p.space = simt::space_over(space, steps);
  if (p.space.count == 0) return Status::Ok;
  p.made = y.data, p.read = x.data, p.element = static_cast<int32_t>(launch.element);
  using Body = FoldWindows<C>;
  return simt::submit<Body>(launch, {simt::blocks_for(p.space.count, Body::kThreads)}, Body::kThreads, p);
}

}  // namespace baracuda::image

namespace baracuda {

template <>
struct SimtKernel<image::Folds> {
  static Status run(const Launch& launch) {
    const TensorView &x = launch[image::FoldArgs::x], &y = launch[image::FoldArgs::y];
#if BCU_HAS_F64
    if (launch.element == Element::F64) return image::submit_fold<double>(launch, x, y);
#endif
    return image::submit_fold<float>(launch, x, y);
  }
};

}  // namespace baracuda
