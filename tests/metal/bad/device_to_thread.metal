// refused: no matching function|address space
#include <metal_stdlib>
using namespace metal;

inline void add_one(thread float& a) { a += 1; }
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  add_one(y[tid]);
}
