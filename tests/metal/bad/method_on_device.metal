// refused: a member function of an object that is not in thread memory
#include <metal_stdlib>
using namespace metal;

struct Params {
  int n;
  int get() const { return n; }
};
kernel void k(device const Params* p [[buffer(0)]], device float* y [[buffer(1)]]) { y[0] = p->get(); }
