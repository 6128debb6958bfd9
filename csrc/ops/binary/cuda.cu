#include "ops/binary/simt_launch.h"

BCU_SIMT_FAMILY(binary)
