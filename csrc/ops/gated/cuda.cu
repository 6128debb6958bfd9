#include "ops/gated/simt_launch.h"

BCU_SIMT_FAMILY(gated)
