#include "ops/cast/simt.h"
#include "simt/metal_kernels.h"
#include "ops/cast/metal.def"
