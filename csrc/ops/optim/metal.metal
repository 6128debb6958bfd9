#include "ops/optim/simt.h"
#include "simt/metal_kernels.h"
#include "ops/optim/metal.def"
