#include "ops/embedding/simt_launch.h"

BCU_SIMT_FAMILY(embedding)
