// Element conversion: the tile driver's own loads and stores, with nothing between them.
#include "backends/cpu/family.h"
#include "core/compute.h"
#include "core/tile.h"
#include "ops/cast/skus.h"

namespace baracuda {

template <>
struct CpuKernel<cast::Cast> {
  static Status run(const Launch& launch) {
    const TensorView &x = launch[0], &y = launch[1];
    IterationSpace space = space_of(y);
    const Operand in[] = {operand(x, space)};
    const Operand out[] = {operand(y, space)};
    if (x.element == y.element) {
      copy_tiles(space, in[0], out[0]);
    } else {
      with_compute_type(x.element, [&](auto c) { run_tiles<decltype(c)>(space, in, out, nullptr, nullptr); });
    }
    return Status::Ok;
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(cast)
