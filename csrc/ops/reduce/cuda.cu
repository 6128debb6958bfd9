#include "ops/reduce/simt_launch.h"

BCU_SIMT_FAMILY(reduce)
