// refused: file not found
#include <metal_stdlib>
using namespace metal;

#include <cmath>
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  y[tid] = std::exp(x[tid]);
}
