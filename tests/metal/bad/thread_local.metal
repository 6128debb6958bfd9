// refused: thread-local|thread_local
#include <metal_stdlib>
using namespace metal;

thread_local int q;
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  y[tid] = q;
}
