// refused: must reside in constant address space
#include <metal_stdlib>
using namespace metal;

const float table[4] = {1, 2, 3, 4};
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  y[tid] = table[tid & 3];
}
