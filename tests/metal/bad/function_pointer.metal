// refused: function
#include <metal_stdlib>
using namespace metal;

inline float square(float v) { return v * v; }
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  float (*f)(float) = square;
  y[tid] = f(x[tid]);
}
