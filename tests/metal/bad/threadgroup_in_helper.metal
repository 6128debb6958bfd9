// refused: __local|local address space
#include <metal_stdlib>
using namespace metal;

inline float helper(float v, uint t) {
  threadgroup float s[32];
  s[t & 31] = v;
  return s[0];
}
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  y[tid] = helper(x[tid], tid);
}
