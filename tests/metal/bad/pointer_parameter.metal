// refused: a pointer or reference without an address space
#include <metal_stdlib>
using namespace metal;

inline float load(const float* p, uint i) { return p[i]; }
