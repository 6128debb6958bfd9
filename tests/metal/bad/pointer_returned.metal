// refused: a pointer or reference without an address space
#include <metal_stdlib>
using namespace metal;

inline const float* next(device const float* p) { return p + 1; }
