// Losses of probabilities on the CPU.
#include "ops/loss/pointwise.h"

namespace baracuda {

BCU_POINTWISE(Bce)
BCU_POINTWISE(BceWithLogits)
BCU_POINTWISE(KlDiv)

}  // namespace baracuda
