// refused: implicit instantiation of undefined template
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

kernel void k(device float* y [[buffer(0)]]) {
  simdgroup_matrix<float, 16, 16> m;
  simdgroup_store(m, y, 16);
}
