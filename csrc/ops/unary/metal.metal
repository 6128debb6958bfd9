#if defined(__METAL_VERSION__)
#pragma METAL fp contract(off)  // as fused expressions are compiled, which give the bits of these kernels
#endif
#include "ops/unary/simt.h"
#include "simt/metal_kernels.h"

#define BCU_UNARY_FLOATS(Op, ...)                             \
  BCU_METAL_MAP(unary_##Op##_f32, (unary::Op), float, 1, 1) \
  BCU_METAL_MAP(unary_##Op##_gradient, (Gradient<unary::Op>), float, 2, 1)
#define BCU_UNARY_REALS(Op, ...) \
  BCU_UNARY_FLOATS(Op)           \
  BCU_METAL_MAP_INTEGERS(unary_##Op, (unary::Op), 1, 1)
#define BCU_UNARY_STEPS(Op, ...) BCU_METAL_MAP_REAL(unary_##Op, (unary::Op), 1, 1)
#define BCU_UNARY_INTEGERS(Op, ...) BCU_METAL_MAP_INTEGERS(unary_##Op, (unary::Op), 1, 1)
#define BCU_UNARY_QUESTIONS(Op, ...) BCU_METAL_MAP_REAL(unary_##Op, (unary::Op), 1, 1)
#define BCU_UNARY_BITS(Op, ...) BCU_METAL_MAP_INTEGERS(unary_##Op, (unary::Op), 2, 1)
#define BCU_UNARY_FLOAT_NUMBERS(Op, name, numbers, ...)                                           \
  BCU_METAL_MAP(unary_##Op##_f32, (unary::Op), float, (1 + BCU_UNARY_COUNT(numbers)), 1) \
  BCU_METAL_MAP(unary_##Op##_gradient, (Gradient<unary::Op>), float, (2 + BCU_UNARY_COUNT(numbers)), 1)
#define BCU_UNARY_REAL_NUMBERS(Op, name, elements, numbers, ...) \
  BCU_UNARY_FLOAT_NUMBERS(Op, name, numbers)                     \
  BCU_METAL_MAP_INTEGERS(unary_##Op, (unary::Op), (1 + BCU_UNARY_COUNT(numbers)), 1)
#define BCU_UNARY_STEP_NUMBERS(Op, name, numbers) \
  BCU_METAL_MAP(unary_##Op##_f32, (unary::Op), float, (1 + BCU_UNARY_COUNT(numbers)), 1)
#include "ops/unary/ops.def"

BCU_METAL_MAP(unary_Gelu_f32, (unary::Gelu), float, 1, 1)
BCU_METAL_MAP(unary_Gelu_gradient, (Gradient<unary::Gelu>), float, 2, 1)
BCU_METAL_MAP(unary_GeluTanh_f32, (unary::GeluTanh), float, 1, 1)
BCU_METAL_MAP(unary_GeluTanh_gradient, (Gradient<unary::GeluTanh>), float, 2, 1)
