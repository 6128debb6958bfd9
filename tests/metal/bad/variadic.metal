// refused: variadic
#include <metal_stdlib>
using namespace metal;

inline int f(int a, ...) { return a; }
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  y[tid] = f(1, 2);
}
