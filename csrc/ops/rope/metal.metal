#include "ops/rope/simt.h"
#include "simt/metal_kernels.h"
#include "ops/rope/metal.def"
