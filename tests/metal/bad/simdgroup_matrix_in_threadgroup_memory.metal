// refused: no matching function
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

kernel void k(device float* y [[buffer(0)]]) {
  threadgroup simdgroup_float8x8 m;
  simdgroup_load(m, y, 8);
}
