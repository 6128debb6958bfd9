// refused: a call of a kernel
#include <metal_stdlib>
using namespace metal;

kernel void a(device float* y [[buffer(0)]]) { y[0] = 1; }
kernel void b(device float* y [[buffer(0)]]) { a(y); }
