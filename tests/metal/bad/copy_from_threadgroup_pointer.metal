// refused: address space|cannot initialize|no matching function
#include <metal_stdlib>
using namespace metal;

inline void put(device float* to, threadgroup const float* from) { *to = *from; }
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  put(y, x);
}
