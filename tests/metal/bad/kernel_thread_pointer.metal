// refused: __private|private|address space
#include <metal_stdlib>
using namespace metal;

kernel void k(thread float* y [[buffer(0)]]) { y[0] = 1; }
