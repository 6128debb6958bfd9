#include "ops/attention/simt_launch.h"

BCU_SIMT_FAMILY(attention)
