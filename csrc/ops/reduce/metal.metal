#include "ops/reduce/simt.h"
#include "simt/metal_kernels.h"
#include "ops/reduce/metal.def"
