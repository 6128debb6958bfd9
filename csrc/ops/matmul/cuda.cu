#include "ops/matmul/cublaslt.h"
#include "ops/matmul/simt_launch.h"

BCU_SIMT_FAMILY(matmul)
