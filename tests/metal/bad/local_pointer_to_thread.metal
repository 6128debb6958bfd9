// refused: a pointer or reference without an address space
#include <metal_stdlib>
using namespace metal;

kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  float a[4] = {1, 2, 3, 4};
  float* p = a;
  y[tid] = p[tid & 3];
}
