// refused: no matching function|address space
#include <metal_stdlib>
using namespace metal;

struct Params {
  int n;
  float a[8];
};
inline float first(const Params& p) { return p.a[0]; }
kernel void k(constant Params& p [[buffer(0)]], device float* y [[buffer(1)]]) { y[0] = first(p); }
