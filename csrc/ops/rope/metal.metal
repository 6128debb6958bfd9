#include "ops/rope/simt.h"
#include "ops/rope/simt_table.h"
#include "simt/metal_kernels.h"
#include "ops/rope/metal.def"
