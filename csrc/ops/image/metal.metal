#include "ops/image/simt.h"
#include "ops/image/simt_fold.h"
#include "ops/image/simt_nms.h"
#include "ops/image/simt_roi.h"
#include "ops/image/simt_sample.h"
#include "simt/metal_kernels.h"

BCU_METAL_KERNEL(image_taps_f32, (image::FillTaps<float>))
BCU_METAL_KERNEL(image_resize_f32, (image::ResizeBody<float, false>))
BCU_METAL_KERNEL(image_resize_backward_f32, (image::ResizeBody<float, true>))
BCU_METAL_KERNEL(image_nearest_f32, (image::NearestBody<float>))
BCU_METAL_KERNEL(image_nearest_i64, (image::NearestBody<int64_t>))
BCU_METAL_KERNEL(image_nearest_u64, (image::NearestBody<uint64_t>))
BCU_METAL_KERNEL(image_sample_f32, (image::SampleImage<float>))
BCU_METAL_KERNEL(image_sample_grid_f32, (image::SampleGrid<float>))
BCU_METAL_KERNEL(image_sample_taps_f32, (image::SampleTaps<float>))
BCU_METAL_KERNEL(image_clear_f32, (image::ClearImage<float>))
BCU_METAL_KERNEL(image_count_digits, (simt::CountDigits))
BCU_METAL_KERNEL(image_sum_counts, (simt::SumCounts))
BCU_METAL_KERNEL(image_move_entries, (simt::MoveEntries))
BCU_METAL_KERNEL(image_spread_taps_f32, (simt::FoldSorted<image::SpreadTaps<float>>))
BCU_METAL_KERNEL(image_fold_f32, (image::FoldWindows<float>))
BCU_METAL_KERNEL(image_check, (simt::CheckIndices))
BCU_METAL_KERNEL(image_nms_sort_f32, (image::NmsSort<float>))
BCU_METAL_KERNEL(image_nms_pairs_f32, (image::NmsPairs<float>))
BCU_METAL_KERNEL(image_nms_keep, (image::NmsKeep))
BCU_METAL_KERNEL(image_check_rois_f32, (image::CheckRois<float>))
BCU_METAL_KERNEL(image_roi_mean_f32, (image::RoiMean<float>))
BCU_METAL_KERNEL(image_roi_gradient_f32, (image::RoiGradient<float>))
BCU_METAL_KERNEL(image_roi_most_f32, (image::RoiMost<float>))
BCU_METAL_KERNEL(image_roi_place_f32, (image::RoiPlace<float>))
