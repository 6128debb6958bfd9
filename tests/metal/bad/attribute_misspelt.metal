// refused: unknown attribute
#include <metal_stdlib>
using namespace metal;

kernel void k(device float* y [[buffer(0)]], uint t [[thread_index_in_treadgroup]]) { y[t] = 1; }
