#include "ops/scan/simt.h"
#include "simt/metal_kernels.h"

BCU_METAL_KERNEL(scan_sum_lines_f32, (scan::Lines<false, float>))
BCU_METAL_KERNEL(scan_sum_lines_u64, (scan::Lines<false, uint64_t>))
BCU_METAL_KERNEL(scan_sum_columns_f32, (scan::Columns<false, float>))
BCU_METAL_KERNEL(scan_sum_columns_u64, (scan::Columns<false, uint64_t>))
BCU_METAL_KERNEL(scan_product_lines_f32, (scan::Lines<true, float>))
BCU_METAL_KERNEL(scan_product_lines_u64, (scan::Lines<true, uint64_t>))
BCU_METAL_KERNEL(scan_product_columns_f32, (scan::Columns<true, float>))
BCU_METAL_KERNEL(scan_product_columns_u64, (scan::Columns<true, uint64_t>))
BCU_METAL_KERNEL(scan_product_gradient, (scan::ProductGradient<float>))
