#include "ops/layout/simt.h"
#include "simt/metal_kernels.h"
#include "ops/layout/metal.def"
