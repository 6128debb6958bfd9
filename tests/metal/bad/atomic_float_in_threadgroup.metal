// refused: no matching function
#include <metal_stdlib>
using namespace metal;

inline void sum(threadgroup atomic<float>* s) { atomic_fetch_add_explicit(s, 1.0f, memory_order_relaxed); }
