#include "ops/norm/simt_launch.h"

BCU_SIMT_FAMILY(norm)
