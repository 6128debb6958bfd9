// The kernels of the table's rows.
#include "ops/image/cpu.h"

#include "backends/cpu/family.h"
#include "ops/image/skus.h"

namespace baracuda {

using namespace image;

template <class Attrs>
struct CpuKernel<image::Resized<Attrs>> {
  static Status run(const Launch& launch) {
    const TensorView &x = launch[ResizeArgs::x], &y = launch[ResizeArgs::y];
    const Resize r = resize_of<Attrs>(launch, x, y, false);
    if constexpr (std::is_same_v<Attrs, NearestAttrs>)
      run_nearest(r, x, y, launch.workspace);
    else
      run_resize(r, x, y, launch.workspace);
    return Status::Ok;
  }
};

template <class Attrs>
struct CpuKernel<image::ResizedBackward<Attrs>> {
  static Status run(const Launch& launch) {
    const TensorView &dy = launch[ResizeBackwardArgs::dy], &dx = launch[ResizeBackwardArgs::dx];
    run_resize(resize_of<Attrs>(launch, dx, dy, true), dy, dx, launch.workspace);
    return Status::Ok;
  }
};

template <>
struct CpuKernel<image::Sample> {
  static Status run(const Launch& launch) {
    const TensorView& x = launch[SampleArgs::x];
    run_sample(sampling_of(launch, x), x, launch[SampleArgs::grid], launch[SampleArgs::y]);
    return Status::Ok;
  }
};

template <>
struct CpuKernel<image::SampleBackward> {
  static Status run(const Launch& launch) {
    using Args = SampleBackwardArgs;
    const TensorView &dy = launch[Args::dy], &x = launch[Args::x], &grid = launch[Args::grid];
    const Sampling s = sampling_of(launch, x);
    run_sample_images(s, dy, grid, launch[Args::dx], launch.workspace);
    run_sample_grids(s, dy, x, grid, launch[Args::dgrid]);
    return Status::Ok;
  }
};

template <>
struct CpuKernel<image::Folds> {
  static Status run(const Launch& launch) {
    const TensorView& y = launch[FoldArgs::y];
    run_fold(fold_of(launch.attrs, y.rank - 2, y.shape + 2), launch[FoldArgs::x], y);
    return Status::Ok;
  }
};

template <>
struct CpuKernel<image::Nms> {
  static Status run(const Launch& launch) { return run_nms(launch); }
};

template <>
struct CpuKernel<image::RoiAlign> {
  static Status run(const Launch& launch) { return run_roi_align(launch); }
};

template <>
struct CpuKernel<image::RoiAlignBackward> {
  static Status run(const Launch& launch) { return run_roi_align_backward(launch); }
};

template <>
struct CpuKernel<image::RoiPool> {
  static Status run(const Launch& launch) { return run_roi_pool(launch); }
};

}  // namespace baracuda

BCU_CPU_FAMILY(image)
