// One exported loop per math function and element, built by math_harness.py once per instruction set level.
#include "baracuda/math/math.h"

#define UNARY_AS(name, type, suffix)                                                          \
  extern "C" void name##_##suffix(const type* BCU_RESTRICT x, type* BCU_RESTRICT y, long n) { \
    for (long i = 0; i < n; ++i) y[i] = baracuda::math::name(x[i]);                           \
  }
#define BINARY_AS(name, type, suffix)                                                                           \
  extern "C" void name##_##suffix(const type* BCU_RESTRICT a, const type* BCU_RESTRICT b, type* BCU_RESTRICT y, \
                                  long n) {                                                                     \
    for (long i = 0; i < n; ++i) y[i] = baracuda::math::name(a[i], b[i]);                                       \
  }
#define BINARY(name) BINARY_AS(name, float, f32) BINARY_AS(name, double, f64)
#if BCU_HAS_F64
#define UNARY(name) UNARY_AS(name, float, f32) UNARY_AS(name, double, f64)
#else
#define UNARY(name) UNARY_AS(name, float, f32)
#endif

UNARY(sin)
UNARY(cos)
UNARY(tan)
UNARY(sin_near)
UNARY(cos_near)
UNARY(tan_near)
#if BCU_HAS_F64  // without f64 only these differ
UNARY(exp)
UNARY(exp_weight)
UNARY(exp2)
UNARY(expm1)
UNARY(log)
UNARY(log2)
UNARY(log10)
UNARY(log1p)
UNARY(sinh)
UNARY(cosh)
UNARY(tanh)
UNARY(asin)
UNARY(acos)
UNARY(atan)
UNARY(asinh)
UNARY(acosh)
UNARY(atanh)
UNARY(cbrt)
UNARY(erf)
UNARY(erfc)
UNARY(erfinv)
UNARY(lgamma)
UNARY(digamma)
UNARY(trigamma)
UNARY(sigmoid)
UNARY(silu)
UNARY(fast_sigmoid)
UNARY(gelu)
UNARY(rsqrt)
BINARY(pow)
BINARY(atan2)
BINARY(hypot)
#endif
