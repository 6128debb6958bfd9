// Every math function in device code; test_math.py only compiles it.
#include "baracuda/math/math.h"

namespace m = baracuda::math;

template <class T>
__global__ void every_function(const T* x, T* y) {
  T v = x[threadIdx.x];
  T sum = m::exp(v) + m::exp2(v) + m::expm1(v) + m::log(v) + m::log2(v) + m::log10(v) + m::log1p(v);
  sum += m::sin(v) + m::cos(v) + m::tan(v) + m::sinh(v) + m::cosh(v) + m::tanh(v);
  sum += m::asin(v) + m::acos(v) + m::atan(v) + m::erf(v) + m::erfc(v) + m::sigmoid(v) + m::silu(v) + m::rsqrt(v) +
         m::pow(v, sum);
  sum += m::asinh(v) + m::acosh(v) + m::atanh(v) + m::cbrt(v) + m::atan2(v, sum) + m::hypot(v, sum);
  sum += m::erfinv(v) + m::lgamma(v) + m::digamma(v) + m::trigamma(v);
  sum += m::gelu(v) + m::fast_sigmoid(v) + m::sigmoid_product(v, v);
  sum += m::silu_slope(v).slope + m::gelu_slope(v).slope + m::fast_sigmoid_slope(v).slope;
  y[threadIdx.x] = sum;
}

template __global__ void every_function<float>(const float*, float*);
template __global__ void every_function<double>(const double*, double*);
