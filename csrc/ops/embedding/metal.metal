#include "ops/embedding/simt.h"
#include "simt/copy_rows.h"
#include "simt/metal_kernels.h"
#include "ops/embedding/metal.def"
