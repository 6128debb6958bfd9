#include "ops/attention/cudnn_launch.h"
#include "ops/attention/simt_launch.h"

BCU_SIMT_FAMILY(attention)
