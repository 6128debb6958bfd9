// refused: C\+\+17|nested namespace
#include <metal_stdlib>
using namespace metal;

namespace a::b {
inline float f() { return 1; }
}
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  y[tid] = a::b::f();
}
