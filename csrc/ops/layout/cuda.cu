#include "ops/layout/simt_launch.h"

BCU_SIMT_FAMILY(layout)
