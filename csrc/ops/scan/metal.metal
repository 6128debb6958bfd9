#include "ops/scan/simt.h"
#include "simt/metal_kernels.h"
#include "ops/scan/metal.def"
