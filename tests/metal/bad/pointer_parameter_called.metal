// refused: a pointer or reference without an address space
#include <metal_stdlib>
using namespace metal;

inline float load(const float* p, uint i) { return p[i]; }
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  y[tid] = load(x, tid);
}
