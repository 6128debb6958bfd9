#if defined(__METAL_VERSION__)
#pragma METAL fp contract(off)  // as fused expressions are compiled, which give the bits of these kernels
#endif
#include "ops/ternary/simt.h"
#include "simt/metal_kernels.h"

BCU_METAL_MAP_REAL(ternary_where, (ternary::Where), 3, 1)
BCU_METAL_MAP(ternary_where_gradient, (Gradient<ternary::Where>), float, 2, 2)
BCU_METAL_MAP_REAL(ternary_clamp, (ternary::Clamp), 3, 1)
BCU_METAL_MAP(ternary_clamp_gradient, (Gradient<ternary::Clamp>), float, 4, 1)
#define BCU_TERNARY_GRADIENT(Op, n) BCU_METAL_MAP(ternary_##Op##_gradient, (Gradient<ternary::Op>), float, (4 + n), 3)
#define BCU_TERNARY_REALS(Op, name, elements, n, ...)                \
  BCU_METAL_MAP_REAL(ternary_##Op, (ternary::Op), (3 + n), 1) \
  BCU_TERNARY_GRADIENT(Op, n)
#define BCU_TERNARY_FLOATS(Op, name, elements, n, ...)               \
  BCU_METAL_MAP(ternary_##Op##_f32, (ternary::Op), float, (3 + n), 1) \
  BCU_TERNARY_GRADIENT(Op, n)
#include "ops/ternary/ops.def"
#undef BCU_TERNARY_GRADIENT
