// refused: recursion
#include <metal_stdlib>
using namespace metal;

struct F {
  template <class T>
  static T f(T n) {
    return n <= 0 ? 1 : n * f(n - 1);
  }
};
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  y[tid] = F::f(int(n));
}
