// refused: pointer
#include <metal_stdlib>
using namespace metal;

kernel void k(device float** p [[buffer(0)]], device float* y [[buffer(1)]]) { y[0] = p[0][0]; }
