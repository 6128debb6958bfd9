// refused: virtual
#include <metal_stdlib>
using namespace metal;

struct A {
  virtual float f() { return 1; }
};
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  A a;
  y[tid] = a.f();
}
