#include "ops/matmul/simt.h"
#include "simt/metal_kernels.h"
#include "ops/matmul/metal.def"
