// Resizing and its gradients: the kernels of the table's rows.
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

}  // namespace baracuda

BCU_CPU_FAMILY(image)
