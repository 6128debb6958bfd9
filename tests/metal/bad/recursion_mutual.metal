// refused: recursion
#include <metal_stdlib>
using namespace metal;

inline float g(int n);
inline float f(int n) { return n <= 0 ? 1.0f : g(n - 1); }
inline float g(int n) { return f(n - 1); }
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  y[tid] = f(n);
}
