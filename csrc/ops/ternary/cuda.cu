#include "ops/ternary/simt_launch.h"

BCU_SIMT_FAMILY(ternary)
