#include "ops/gated/simt.h"
#include "simt/metal_kernels.h"
#include "ops/gated/metal.def"
