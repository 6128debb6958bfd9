#include "ops/unary/simt_launch.h"

BCU_SIMT_FAMILY(unary)
