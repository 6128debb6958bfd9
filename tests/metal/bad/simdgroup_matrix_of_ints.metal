// refused: implicit instantiation of undefined template
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

kernel void k(device int* y [[buffer(0)]]) {
  simdgroup_matrix<int, 8, 8> m;
  simdgroup_store(m, y, 8);
}
