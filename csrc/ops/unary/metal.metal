#include "ops/unary/simt.h"
#include "simt/metal_kernels.h"
#include "ops/unary/metal.def"
