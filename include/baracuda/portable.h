// The only file that knows which compiler is reading: host C++ (GCC, Clang), CUDA C++ or the Metal shading language.
#pragma once

#if defined(__METAL_VERSION__)
#include <metal_stdlib>
// Metal reorders sums by default, which the two-part arithmetic of the math headers does not survive.
#pragma METAL fp math_mode(safe)
#define BCU_FN static inline
#define BCU_METHOD inline
#define BCU_DEVICE static inline
#define BCU_GLOBAL device
#define BCU_SHARED threadgroup
#define BCU_THREAD thread
#define BCU_CONSTANT constant
#define BCU_UNROLL
#define BCU_NO_UNROLL
#define BCU_HAS_F64 0
#define BCU_HAS_FMA 1
#define BCU_RESTRICT
#elif defined(__CUDACC__)
#include <cmath>
#include <cstdint>
#define BCU_FN static __host__ __device__ __forceinline__
#define BCU_METHOD __device__ __forceinline__
#define BCU_DEVICE static __device__ __forceinline__
#define BCU_UNROLL _Pragma("unroll")
#define BCU_NO_UNROLL _Pragma("unroll 1")
#define BCU_HAS_F64 1
#define BCU_RESTRICT __restrict__
#if defined(__CUDA_ARCH__) || defined(__FMA__) || defined(__aarch64__)
#define BCU_HAS_FMA 1
#else
#define BCU_HAS_FMA 0
#endif
#else
#include <cstdint>
#define BCU_FN static inline __attribute__((always_inline))
#define BCU_METHOD inline
#define BCU_DEVICE static inline
#define BCU_UNROLL
#define BCU_NO_UNROLL
// A host build may set BCU_HAS_F64=0 to compile exactly what Metal sees.
#ifndef BCU_HAS_F64
#define BCU_HAS_F64 1
#endif
#define BCU_RESTRICT __restrict__
#if defined(__FMA__) || defined(__aarch64__)
#define BCU_HAS_FMA 1
#else
#define BCU_HAS_FMA 0
#endif
#endif

// On a struct: memory that was written as other types may be read as this one, at multiples of so many bytes.
#define BCU_WORDS(bytes) __attribute__((may_alias, aligned(bytes)))

// Address spaces, which only Metal has. BCU_FN: a function of values, callable anywhere; BCU_DEVICE: one that only
// kernel bodies call; both also mark static members. BCU_METHOD: a member function of an object.
#if !defined(__METAL_VERSION__)
#define BCU_GLOBAL
#define BCU_SHARED
#define BCU_THREAD
#define BCU_CONSTANT const
#endif

namespace baracuda::math {

#if defined(__METAL_VERSION__)

template <class To, class From>
BCU_FN To bit_cast(From v) {
  return as_type<To>(v);
}
BCU_FN float fabs(float x) { return metal::fabs(x); }
BCU_FN float sqrt(float x) { return metal::precise::sqrt(x); }
BCU_FN float rint(float x) { return metal::rint(x); }
BCU_FN float copysign(float x, float s) { return metal::copysign(x, s); }
BCU_FN float fma(float a, float b, float c) { return metal::fma(a, b, c); }

#else

// On the host each of these is one packed instruction under -fno-math-errno (rint needs SSE4.1, which x86-64-v2 has).
template <class To, class From>
BCU_FN To bit_cast(From v) {
  return __builtin_bit_cast(To, v);
}
#if defined(__CUDA_ARCH__)
BCU_FN float fabs(float x) { return ::fabsf(x); }
BCU_FN float sqrt(float x) { return ::sqrtf(x); }
BCU_FN float rint(float x) { return ::rintf(x); }
BCU_FN float copysign(float x, float s) { return ::copysignf(x, s); }
BCU_FN float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
BCU_FN double fabs(double x) { return ::fabs(x); }
BCU_FN double sqrt(double x) { return ::sqrt(x); }
BCU_FN double rint(double x) { return ::rint(x); }
BCU_FN double copysign(double x, double s) { return ::copysign(x, s); }
BCU_FN double fma(double a, double b, double c) { return ::fma(a, b, c); }
#else
BCU_FN float fabs(float x) { return __builtin_fabsf(x); }
BCU_FN float sqrt(float x) { return __builtin_sqrtf(x); }
BCU_FN float rint(float x) { return __builtin_rintf(x); }
BCU_FN float copysign(float x, float s) { return __builtin_copysignf(x, s); }
BCU_FN double fabs(double x) { return __builtin_fabs(x); }
BCU_FN double sqrt(double x) { return __builtin_sqrt(x); }
BCU_FN double rint(double x) { return __builtin_rint(x); }
BCU_FN double copysign(double x, double s) { return __builtin_copysign(x, s); }
#if BCU_HAS_FMA  // without the instruction this would be a scalar library call: write a * b + c there
BCU_FN float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
BCU_FN double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#endif
#endif
#endif

template <class T>
BCU_FN T select(bool c, T a, T b) {
  return c ? a : b;
}

// The bits of a floating-point type.
template <class T>
struct FloatTraits;
template <>
struct FloatTraits<float> {
  using Int = int32_t;
  using Uint = uint32_t;
  enum : int { kMantissaBits = 23, kBias = 127, kLowHalfBits = 12 };
};
#if BCU_HAS_F64
template <>
struct FloatTraits<double> {
  using Int = int64_t;
  using Uint = uint64_t;
  enum : int { kMantissaBits = 52, kBias = 1023, kLowHalfBits = 27 };
};
#endif

template <class T>
BCU_FN T infinity() {
  using Uint = typename FloatTraits<T>::Uint;
  return bit_cast<T>(Uint(2 * FloatTraits<T>::kBias + 1) << FloatTraits<T>::kMantissaBits);
}

template <class T>
BCU_FN T quiet_nan() {
  using Uint = typename FloatTraits<T>::Uint;
  return bit_cast<T>(Uint(4 * FloatTraits<T>::kBias + 3) << (FloatTraits<T>::kMantissaBits - 1));
}

// min and max that keep a NaN in x.
template <class T>
BCU_FN T at_most(T x, T limit) {
  return x > limit ? limit : x;
}
template <class T>
BCU_FN T at_least(T x, T limit) {
  return x < limit ? limit : x;
}

}  // namespace baracuda::math
