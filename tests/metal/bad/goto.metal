// refused: goto
#include <metal_stdlib>
using namespace metal;

kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  if (n < 0) goto end;
  y[tid] = x[tid];
  end:
  return;
}
