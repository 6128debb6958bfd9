// refused: half|_Float16|__bf16
#include <metal_stdlib>
using namespace metal;

kernel void k(device const half* x [[buffer(0)]], device bfloat* y [[buffer(1)]]) { y[0] = x[0]; }
