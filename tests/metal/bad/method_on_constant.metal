// refused: cannot initialize object parameter|member function|address space
#include <metal_stdlib>
using namespace metal;

struct Params {
  int n;
  int get() const { return n; }
};
kernel void k(constant Params& p [[buffer(0)]], device float* y [[buffer(1)]]) { y[0] = p.get(); }
