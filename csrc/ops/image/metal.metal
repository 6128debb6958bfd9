#include "ops/image/simt.h"
#include "simt/metal_kernels.h"

BCU_METAL_KERNEL(image_taps_f32, (image::FillTaps<float>))
BCU_METAL_KERNEL(image_resize_f32, (image::ResizeBody<float, false>))
BCU_METAL_KERNEL(image_resize_backward_f32, (image::ResizeBody<float, true>))
BCU_METAL_KERNEL(image_nearest_f32, (image::NearestBody<float>))
BCU_METAL_KERNEL(image_nearest_i64, (image::NearestBody<int64_t>))
BCU_METAL_KERNEL(image_nearest_u64, (image::NearestBody<uint64_t>))
