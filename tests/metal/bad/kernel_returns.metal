// refused: void
#include <metal_stdlib>
using namespace metal;

kernel int k(device float* y [[buffer(0)]]) {
  y[0] = 1;
  return 0;
}
