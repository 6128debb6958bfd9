#include "ops/binary/simt.h"
#include "simt/metal_kernels.h"
#include "ops/binary/metal.def"
