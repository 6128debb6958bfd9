#include "ops/optim/simt_norm.h"
#include "simt/metal_kernels.h"
#include "ops/optim/metal.def"
