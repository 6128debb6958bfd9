// refused: parameter without an attribute
#include <metal_stdlib>
using namespace metal;

kernel void k(device float* y [[buffer(0)]], float a) { y[0] = a; }
