// Pooling and its gradients: the kernels of the table's rows.
#include "ops/pool/cpu.h"

#include "backends/cpu/family.h"
#include "host/in_range.h"
#include "ops/pool/skus.h"

namespace baracuda {

using namespace pool;

template <Windows kWindows>
struct CpuKernel<pool::Max<kWindows>> {
  static Status run(const Launch& launch) {
    const TensorView &x = launch[MaxArgs::x], &y = launch[MaxArgs::y];
    run_max(max_pool_of<kWindows>(launch, x, y), x, y, launch[MaxArgs::indices]);
    return Status::Ok;
  }
};

template <Windows kWindows>
struct CpuKernel<pool::MaxBackward<kWindows>> {
  static Status run(const Launch& launch) {
    using Args = MaxBackwardArgs;
    const TensorView &dy = launch[Args::dy], &dx = launch[Args::dx];
    const Pool pool = max_pool_of<kWindows>(launch, dx, dy);
    if (!in_range(launch, Args::indices, pool.plane())) return Status::IndexOutOfRange;
    run_max_backward(pool, dy, launch[Args::indices], dx);
    return Status::Ok;
  }
};

template <Windows kWindows>
struct CpuKernel<pool::Mean<kWindows>> {
  static Status run(const Launch& launch) {
    const TensorView &x = launch[MeanArgs::x], &y = launch[MeanArgs::y];
    run_mean(mean_pool_of<kWindows>(launch, x, y), x, y);
    return Status::Ok;
  }
};

template <Windows kWindows>
struct CpuKernel<pool::MeanBackward<kWindows>> {
  static Status run(const Launch& launch) {
    const TensorView &dy = launch[MeanBackwardArgs::dy], &dx = launch[MeanBackwardArgs::dx];
    run_mean_backward(mean_pool_of<kWindows>(launch, dx, dy), dy, dx);
    return Status::Ok;
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(pool)
