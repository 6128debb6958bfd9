// refused: C\+\+17|fold
#include <metal_stdlib>
using namespace metal;

template <class... A>
inline float sum(A... a) {
  return (a + ...);
}
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  y[tid] = sum(1.0f, 2.0f);
}
