#include "ops/sampling/simt.h"
#include "ops/sampling/simt_draft.h"
#include "simt/metal_kernels.h"

BCU_METAL_KERNEL(sampling_draw, (sampling::DrawTokens))
BCU_METAL_KERNEL(sampling_filter, (sampling::FilterTokens))
BCU_METAL_KERNEL(sampling_verify, (sampling::VerifyDraft))
BCU_METAL_KERNEL(sampling_tree, (sampling::WalkTree))
