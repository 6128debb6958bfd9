// No kernel of an expression is known beforehand: source.cpp writes their texts, which begin with this one's.
#include "ops/expr/simt.h"
#include "simt/metal_kernels.h"
