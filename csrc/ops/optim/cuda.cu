#include "ops/optim/simt_launch.h"

BCU_SIMT_FAMILY(optim)
