#include "ops/matmul/simt_launch.h"

BCU_SIMT_FAMILY(matmul)
