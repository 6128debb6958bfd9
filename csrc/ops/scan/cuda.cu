#include "ops/scan/simt_launch.h"

BCU_SIMT_FAMILY(scan)
