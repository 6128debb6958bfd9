// Exponentials and logarithms.
#include "ops/unary/cpu.h"

namespace baracuda::unary {

BCU_UNARY_BOTH(Exp)
BCU_UNARY_BOTH(Exp2)
BCU_UNARY_BOTH(Expm1)
BCU_UNARY_BOTH(Log)
BCU_UNARY_BOTH(Log2)
BCU_UNARY_BOTH(Log10)
BCU_UNARY_BOTH(Log1p)

}  // namespace baracuda::unary
