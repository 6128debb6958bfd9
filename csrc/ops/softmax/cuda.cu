#include "ops/softmax/simt_launch.h"

BCU_SIMT_FAMILY(softmax)
