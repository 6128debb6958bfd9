#include "ops/pool/simt.h"
#include "simt/index.h"
#include "simt/metal_kernels.h"

BCU_METAL_KERNEL(pool_check, (simt::CheckIndices))
BCU_METAL_KERNEL(pool_max_f32, (pool::MaxPool<float>))
BCU_METAL_KERNEL(pool_max_i64, (pool::MaxPool<int64_t>))
BCU_METAL_KERNEL(pool_max_u64, (pool::MaxPool<uint64_t>))
BCU_METAL_KERNEL(pool_max_backward_f32, (pool::PoolGradient<float, true>))
BCU_METAL_KERNEL(pool_mean_f32, (pool::MeanPool<float>))
BCU_METAL_KERNEL(pool_mean_backward_f32, (pool::PoolGradient<float, false>))
