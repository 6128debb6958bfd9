// refused: dynamic_cast|a derived class|polymorphic
#include <metal_stdlib>
using namespace metal;

struct A {
  int a;
};
struct B : A {};
kernel void k(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], constant int& n [[buffer(2)]],
              uint tid [[thread_index_in_threadgroup]]) {
  B b;
  thread A* a = &b;
  y[tid] = dynamic_cast<thread B*>(a) ? 1 : 0;
}
