// Sign, rounding, powers.
#include "ops/unary/cpu.h"

namespace baracuda::unary {

BCU_UNARY_FORWARD(Sign)
BCU_UNARY_FORWARD(Floor)
BCU_UNARY_FORWARD(Ceil)
BCU_UNARY_FORWARD(Round)
BCU_UNARY_FORWARD(Trunc)
BCU_UNARY_BOTH(Neg)
BCU_UNARY_BOTH(Abs)
BCU_UNARY_BOTH(Square)
BCU_UNARY_BOTH(Relu)
BCU_UNARY_BOTH(Reciprocal)
BCU_UNARY_BOTH(Sqrt)
BCU_UNARY_BOTH(Rsqrt)

}  // namespace baracuda::unary
