// What folds the partial results of strips. Other kernels of expressions are not known beforehand: source.cpp writes their
// texts, which begin with the same.
#include "ops/expr/simt.h"
#include "simt/metal_kernels.h"

BCU_METAL_KERNEL(expr_sums, (simt::FoldRows<simt::StridedRows<float>, simt::SumFold<float>>))
BCU_METAL_KERNEL(expr_maxima, (simt::FoldRows<simt::StridedRows<float>, simt::ExtremeFold<true, float>>))
BCU_METAL_KERNEL(expr_minima, (simt::FoldRows<simt::StridedRows<float>, simt::ExtremeFold<false, float>>))
