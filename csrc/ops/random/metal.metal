#include "ops/random/simt.h"
#include "simt/metal_kernels.h"
#include "ops/random/metal.def"
