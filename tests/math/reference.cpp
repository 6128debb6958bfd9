// References for the vector math, and the comparison. f32 is compared with libm's double; f64 with long double (64 bits
// of significand on x86-64, 113 on Linux aarch64) and, in test_math.py, with mpmath.
#include <cmath>

template <class T>
static T sigmoid(T v) {
  return v < 0 ? std::exp(v) / (1 + std::exp(v)) : 1 / (1 + std::exp(-v));
}

template <class T>
static T silu(T v) {
  return v * sigmoid(v);
}

template <class T>
static T gelu(T v) {
  return v / 2 * std::erfc(-v / std::sqrt(T(2)));
}

template <class T>
static T rsqrt(T v) {
  return 1 / std::sqrt(v);
}

// Newton's method on log(erfc), or on erf where that is better conditioned.
template <class T>
static T erfinv(T v) {
  const T a = std::fabs(v), scale = std::sqrt(std::acos(T(-1))) / 2;
  if (!(a < 1)) return a == 1 ? std::copysign(T(INFINITY), v) : T(NAN);
  if (a < T(1e-8)) return v * scale;
  const T w = -std::log1p(-a * a);
  T y = a < T(0.9) ? a * scale : std::sqrt(w - std::log(w + 1) / 2);
  for (int i = 0; i < 40; ++i) {
    const T slope = std::exp(-y * y) / scale;
    const T step = a < T(0.5) ? (std::erf(y) - a) / slope : -std::log(std::erfc(y) / (1 - a)) * std::erfc(y) / slope;
    y -= step;
    if (std::fabs(step) < y * T(1e-19)) break;
  }
  return std::copysign(y, v);
}

// For v > 0, by recurrence and the asymptotic series from 24 on.
template <class T>
static T digamma(T v) {
  T sum = 0;
  for (; v < 24; v += 1) sum -= 1 / v;
  const T z = 1 / (v * v);
  const T c[] = {T(1) / 12, T(-1) / 120, T(1) / 252, T(-1) / 240, T(5) / 660, T(-691) / 32760, T(1) / 12};
  T series = 0;
  for (int k = 6; k >= 0; --k) series = (series + c[k]) * z;
  return sum + (std::log(v) - 1 / (2 * v) - series);
}

template <class T>
static T trigamma(T v) {
  T sum = 0;
  for (; v < 24; v += 1) sum += 1 / (v * v);
  const T y = 1 / v, z = y * y;
  const T c[] = {T(1) / 6, T(-1) / 30, T(1) / 42, T(-1) / 30, T(5) / 66, T(-691) / 2730, T(7) / 6};
  T series = 0;
  for (int k = 6; k >= 0; --k) series = (series + c[k]) * z;
  return sum + (y + z / 2 + y * series);
}

#define UNARY_AS(name, function, type)                                     \
  extern "C" void name(const double* x, type* y, long n) {                 \
    for (long i = 0; i < n; ++i) y[i] = function(static_cast<type>(x[i])); \
  }
#define UNARY(name, function) UNARY_AS(name##_f64, function, double) UNARY_AS(name##_wide, function, long double)

UNARY(exp, std::exp)
UNARY(exp2, std::exp2)
UNARY(expm1, std::expm1)
UNARY(log, std::log)
UNARY(log2, std::log2)
UNARY(log10, std::log10)
UNARY(log1p, std::log1p)
UNARY(sin, std::sin)
UNARY(cos, std::cos)
UNARY(tan, std::tan)
UNARY(sinh, std::sinh)
UNARY(cosh, std::cosh)
UNARY(tanh, std::tanh)
UNARY(asin, std::asin)
UNARY(acos, std::acos)
UNARY(atan, std::atan)
UNARY(asinh, std::asinh)
UNARY(acosh, std::acosh)
UNARY(atanh, std::atanh)
UNARY(cbrt, std::cbrt)
UNARY(erf, std::erf)
UNARY(erfc, std::erfc)
UNARY(erfinv, erfinv)
UNARY(lgamma, std::lgamma)
UNARY(digamma, digamma)
UNARY(trigamma, trigamma)
UNARY(sigmoid, sigmoid)
UNARY(silu, silu)
UNARY(fast_sigmoid, sigmoid)
UNARY(gelu, gelu)
UNARY(rsqrt, rsqrt)

#define BINARY_AS(name, function, type)                                                             \
  extern "C" void name(const double* a, const double* b, type* y, long n) {                         \
    for (long i = 0; i < n; ++i) y[i] = function(static_cast<type>(a[i]), static_cast<type>(b[i])); \
  }
#define BINARY(name, function) BINARY_AS(name##_f64, function, double) BINARY_AS(name##_wide, function, long double)

BINARY(pow, std::pow)
BINARY(atan2, std::atan2)
BINARY(hypot, std::hypot)

// floor(log2(x)) and x * 2^n for normal results; std::ilogb and std::ldexp would take most of the exhaustive test's
// time.
static int exponent_of(double x) { return static_cast<int>(__builtin_bit_cast(unsigned long long, x) >> 52) - 1023; }
static int exponent_of(long double x) { return std::ilogb(x); }
static double scaled(double x, int n) {
  return x * __builtin_bit_cast(double, static_cast<unsigned long long>(n + 1023) << 52);
}
static double scaled(long double x, int n) { return static_cast<double>(std::ldexp(x, n)); }

// The largest error of y against the reference, in ulps of the reference; a wrong NaN, sign or infinity counts as 1e30.
template <class T, class R>
static double worst(const T* y, const R* r, long n, int mantissa_bits, int min_exponent, long* where) {
  double largest = -1.0;
  const R limit = std::ldexp(R(1), 1 - min_exponent + 1);
  for (long i = 0; i < n; ++i) {
    double error;
    if (std::isnan(y[i]) || std::isnan(r[i])) {
      error = std::isnan(y[i]) && std::isnan(r[i]) ? 0.0 : 1e30;
    } else if (std::signbit(y[i]) != std::signbit(r[i])) {
      error = 1e30;
    } else {
      // Infinity takes the place of the first power of two that is out of range.
      R want = std::fmin(std::fabs(r[i]), limit), got = std::fmin(std::fabs(static_cast<R>(y[i])), limit);
      int exponent = want == 0 ? min_exponent : exponent_of(want);
      if (exponent < min_exponent) exponent = min_exponent;
      if (exponent > 1 - min_exponent) exponent = 1 - min_exponent;
      error = scaled(std::fabs(got - want), mantissa_bits - exponent);
    }
    if (error > largest) {
      largest = error;
      *where = i;
    }
  }
  return largest;
}

extern "C" double worst_f32(const float* y, const double* r, long n, long* where) {
  return worst(y, r, n, 23, -126, where);
}
extern "C" double worst_f64(const double* y, const long double* r, long n, long* where) {
  return worst(y, r, n, 52, -1022, where);
}
