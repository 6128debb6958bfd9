// refused: must reside in constant address space
#include <metal_stdlib>
using namespace metal;

constexpr int kSize = 4;
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  y[tid] = x[tid & kSize];
}
