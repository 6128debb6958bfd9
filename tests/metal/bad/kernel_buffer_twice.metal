// refused: buffer index twice
#include <metal_stdlib>
using namespace metal;

kernel void k(device float* y [[buffer(0)]], device float* z [[buffer(0)]]) { y[0] = z[0]; }
