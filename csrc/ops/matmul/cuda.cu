#include "ops/matmul/cublaslt.h"
#include "ops/matmul/simt_launch.h"

// What slices need of each other.
#if BCU_SLICES > 1
namespace baracuda::matmul {
#if BCU_SLICE == 0
Status run_tiles_there(const Launch& launch, const Gemm& g) { return run_tiles(launch, g); }
#endif
#if BCU_SLICE == 1 % BCU_SLICES
Status run_mma_there(simt::f16, const Launch& launch, const Gemm& g, Along a, Along b) {
  return run_mma_as<simt::f16>(launch, g, a, b);
}
Status run_mma_or_tiles(const Launch& launch, const Gemm& g) { return run_mma(launch, g); }
#endif
#if BCU_SLICE == 2 % BCU_SLICES
Status run_scaled_there(const Launch& launch, const Gemm& g) { return run_scaled(launch, g); }
#endif
#if BCU_SLICE == 3 % BCU_SLICES
Status run_mma_there(simt::bf16, const Launch& launch, const Gemm& g, Along a, Along b) {
  return run_mma_as<simt::bf16>(launch, g, a, b);
}
#endif
}  // namespace baracuda::matmul
#endif

BCU_SIMT_FAMILY(matmul)
