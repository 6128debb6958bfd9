#include "ops/gated/simt.h"
#include "simt/metal_kernels.h"

BCU_METAL_MAP(gated_glu_forward, (gated::Product<gated::Glu>), float, 2, 1)
BCU_METAL_MAP(gated_reglu_forward, (gated::Product<gated::ReGlu>), float, 2, 1)
BCU_METAL_MAP(gated_swiglu_forward, (gated::Product<gated::SwiGlu>), float, 2, 1)
BCU_METAL_MAP(gated_geglu_forward, (gated::Product<gated::GeGlu>), float, 2, 1)
BCU_METAL_MAP(gated_glu_backward, (gated::Gradients<gated::Glu>), float, 3, 2)
BCU_METAL_MAP(gated_reglu_backward, (gated::Gradients<gated::ReGlu>), float, 3, 2)
BCU_METAL_MAP(gated_swiglu_backward, (gated::Gradients<gated::SwiGlu>), float, 3, 2)
BCU_METAL_MAP(gated_geglu_backward, (gated::Gradients<gated::GeGlu>), float, 3, 2)
