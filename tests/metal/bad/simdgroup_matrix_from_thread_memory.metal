// refused: no matching function
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

kernel void k(device float* y [[buffer(0)]]) {
  float mine[64];
  simdgroup_float8x8 m;
  simdgroup_load(m, (thread const float*)mine, 8);
  simdgroup_store(m, y, 8);
}
