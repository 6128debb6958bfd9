// Quick double results for the exhaustive test, and which f32 results they cannot vouch for. Nothing is judged by them:
// what is in doubt goes to the references of reference.cpp.
//
// Declared by hand, for <cmath> offers libmvec's vector forms only under -ffast-math, which would switch the process to
// flushing subnormal numbers. Elsewhere the same loops call libm.
#include <cstdint>

#if defined(__x86_64__) && defined(__gnu_linux__)
#define VECTOR __attribute__((simd("notinbranch")))
#else
#define VECTOR
#endif
#define LIBM(function) extern "C" VECTOR double function(double) noexcept;
LIBM(exp)
LIBM(exp2)
LIBM(expm1)
LIBM(log)
LIBM(log2)
LIBM(log10)
LIBM(log1p)
LIBM(sin)
LIBM(cos)
LIBM(tan)
LIBM(sinh)
LIBM(cosh)
LIBM(tanh)
LIBM(asin)
LIBM(acos)
LIBM(atan)
LIBM(asinh)
LIBM(acosh)
LIBM(atanh)
LIBM(cbrt)
LIBM(erf)
LIBM(erfc)

#define NEARLY(name, formula)                                        \
  extern "C" void name##_nearly(const float* x, double* y, long n) { \
    for (long i = 0; i < n; ++i) {                                   \
      const double v = static_cast<double>(x[i]);                    \
      y[i] = formula;                                                \
    }                                                                \
  }

NEARLY(exp, exp(v))
NEARLY(exp2, exp2(v))
NEARLY(expm1, expm1(v))
NEARLY(log, log(v))
NEARLY(log2, log2(v))
NEARLY(log10, log10(v))
NEARLY(log1p, log1p(v))
NEARLY(sin, sin(v))
NEARLY(cos, cos(v))
NEARLY(tan, tan(v))
NEARLY(sinh, sinh(v))
NEARLY(cosh, cosh(v))
NEARLY(tanh, tanh(v))
NEARLY(asin, asin(v))
NEARLY(acos, acos(v))
NEARLY(atan, atan(v))
NEARLY(asinh, asinh(v))
NEARLY(acosh, acosh(v))
NEARLY(atanh, atanh(v))
NEARLY(cbrt, cbrt(v))
NEARLY(erf, erf(v))
NEARLY(erfc, erfc(v))
NEARLY(sigmoid, 1 / (1 + exp(-v)))
NEARLY(fast_sigmoid, 1 / (1 + exp(-v)))
NEARLY(silu, v / (1 + exp(-v)))
NEARLY(gelu, v / 2 * erfc(-v * 0.70710678118654752440))
NEARLY(rsqrt, 1 / __builtin_sqrt(v))

// 1 for every y that is not plainly within `ulp + square x^2` ulps of its nearly exact result. There is no doubt where
// both are finite and of one sign, both are NaN, or y is infinite and the other far past the largest float.
extern "C" void doubtful(const float* y, const double* near, const float* x, long n, double ulp, double square,
                         unsigned char* doubt) {
  for (long i = 0; i < n; ++i) {
    const uint64_t bits = __builtin_bit_cast(uint64_t, near[i]);
    double unit = __builtin_bit_cast(double, bits & 0x7ff0000000000000);
    unit = (unit > 0x1p-126 ? unit : 0x1p-126) * 0x1p-23;
    const double v = static_cast<double>(x[i]), wide = static_cast<double>(y[i]);
    // The double's own error, a few units of its last place, is far below the millionth that is given away here.
    const double allowed = 0.999999 * (ulp + square * v * v) * unit, error = __builtin_fabs(wide - near[i]);
    const bool signs = (__builtin_bit_cast(uint32_t, y[i]) ^ static_cast<uint32_t>(bits >> 32)) >> 31;
    const bool within = (error <= allowed) & (__builtin_fabs(near[i]) < 0x1p127) & !signs;
    const bool past = (__builtin_fabs(wide) > 0x1p128) & (__builtin_fabs(near[i]) > 0x1p129) & !signs;
    const bool neither = (wide != wide) & (near[i] != near[i]);
    doubt[i] = !(within | past | neither);
  }
}
