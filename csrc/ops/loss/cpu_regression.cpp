// Losses of differences on the CPU.
#include "ops/loss/pointwise.h"

namespace baracuda {

BCU_POINTWISE(Mse)
BCU_POINTWISE(L1)
BCU_POINTWISE(SmoothL1)
BCU_POINTWISE(Huber)

}  // namespace baracuda
