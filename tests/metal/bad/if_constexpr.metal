// refused: C\+\+17|constexpr
#include <metal_stdlib>
using namespace metal;

template <int D>
inline float g(float v) {
  if constexpr (D > 4) return v;
  return v * 2;
}
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  y[tid] = g<3>(x[tid]);
}
