#include "ops/softmax/simt.h"
#include "simt/metal_kernels.h"
#include "ops/softmax/metal.def"
