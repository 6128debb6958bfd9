#include "ops/ternary/simt.h"
#include "simt/metal_kernels.h"
#include "ops/ternary/metal.def"
