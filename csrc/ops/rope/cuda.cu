#include "ops/rope/simt_launch.h"

BCU_SIMT_FAMILY(rope)
