#if defined(__METAL_VERSION__)
#pragma METAL fp contract(off)  // as fused expressions are compiled, which give the bits of these kernels
#endif
#include "ops/binary/simt.h"
#include "simt/metal_kernels.h"

#define BCU_BINARY_GRADIENT(Op) BCU_METAL_MAP(binary_##Op##_gradient, (Gradient<binary::Op>), float, 3, 2)
#define BCU_BINARY_CHECKED(Op)                                                                                       \
  BCU_METAL_MAP(binary_##Op##_f32, (binary::Op), float, 2, 1)                                                        \
  BCU_METAL_MAP_WITH(binary_##Op##_i64, (binary::Checked<binary::Op>), int64_t, 2, 1, (binary::DivisorCheck))        \
  BCU_METAL_MAP_WITH(binary_##Op##_u64, (binary::Checked<binary::Op>), uint64_t, 2, 1, (binary::DivisorCheck))

#define BCU_BINARY_REALS(Op, ...)                       \
  BCU_METAL_MAP_REAL(binary_##Op, (binary::Op), 2, 1) \
  BCU_BINARY_GRADIENT(Op)
#define BCU_BINARY_FLOATS(Op, ...)                              \
  BCU_METAL_MAP(binary_##Op##_f32, (binary::Op), float, 2, 1) \
  BCU_BINARY_GRADIENT(Op)
#define BCU_BINARY_DIVISIONS(Op, ...) \
  BCU_BINARY_CHECKED(Op)              \
  BCU_BINARY_GRADIENT(Op)
#define BCU_BINARY_QUESTIONS(Op, ...) BCU_METAL_MAP_REAL(binary_##Op, (binary::Op), 2, 1)
#define BCU_BINARY_BITS(Op, ...) BCU_METAL_MAP_INTEGERS(binary_##Op, (binary::Op), 2, 1)
#define BCU_BINARY_STEPS(Op, ...) BCU_METAL_MAP_REAL(binary_##Op, (binary::Op), 2, 1)
#define BCU_BINARY_FLOAT_QUESTIONS(Op, name, n) BCU_METAL_MAP(binary_##Op##_f32, (binary::Op), float, (2 + n), 1)
#include "ops/binary/ops.def"

BCU_METAL_MAP(binary_nextafter_f32, (binary::Nextafter), float, 3, 1)
BCU_BINARY_CHECKED(FloorDivide)
BCU_BINARY_CHECKED(TruncDivide)
BCU_METAL_MAP_REAL(binary_add, (binary::Add), 3, 1)
BCU_METAL_MAP(binary_add_gradient, (Gradient<binary::Add>), float, 2, 2)
BCU_METAL_MAP_REAL(binary_sub, (binary::Sub), 3, 1)
BCU_METAL_MAP(binary_sub_gradient, (Gradient<binary::Sub>), float, 2, 2)
#undef BCU_BINARY_GRADIENT
#undef BCU_BINARY_CHECKED
