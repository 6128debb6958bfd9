// refused: decomposition|C\+\+17
#include <metal_stdlib>
using namespace metal;

struct Q {
  int a, b;
};
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  auto [a, b] = Q{1, 2};
  y[tid] = a + b;
}
