#include "ops/matmul/simt_quantized.h"
#include "ops/matmul/simt_thin.h"
#include "simt/metal_kernels.h"
#include "ops/matmul/metal.def"
