// refused: a pointer or reference without an address space
#include <metal_stdlib>
using namespace metal;

struct Params {
  float* data;
};
