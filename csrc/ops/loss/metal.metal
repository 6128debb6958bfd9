#include "ops/loss/simt.h"
#include "simt/metal_kernels.h"
#include "ops/loss/metal.def"
