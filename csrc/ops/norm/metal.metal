#include "ops/norm/simt.h"
#include "ops/norm/simt_backward.h"
#include "simt/metal_kernels.h"
#include "ops/norm/metal.def"
