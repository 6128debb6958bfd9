#include "ops/loss/simt_launch.h"

BCU_SIMT_FAMILY(loss)
