// refused: program scope|constant address space|global
#include <metal_stdlib>
using namespace metal;

thread float state;
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  y[tid] = x[tid] + state;
}
