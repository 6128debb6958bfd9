// Circular and hyperbolic functions.
#include "ops/unary/cpu.h"

namespace baracuda::unary {

BCU_UNARY_BOTH(Sin)
BCU_UNARY_BOTH(Cos)
BCU_UNARY_BOTH(Tan)
BCU_UNARY_BOTH(Sinh)
BCU_UNARY_BOTH(Cosh)
BCU_UNARY_BOTH(Tanh)

}  // namespace baracuda::unary
