#include "ops/indexing/simt_launch.h"

BCU_SIMT_FAMILY(indexing)
