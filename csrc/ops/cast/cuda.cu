#include "ops/cast/simt_launch.h"

BCU_SIMT_FAMILY(cast)
