#include "ops/random/simt_launch.h"

BCU_SIMT_FAMILY(random)
