// refused: std
#include <metal_stdlib>
using namespace metal;

template <class T>
struct S {
  enum : int { k = std::is_same<T, float>::value };
};
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  y[tid] = S<float>::k;
}
