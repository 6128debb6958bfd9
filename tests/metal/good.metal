// What all of the refused snippets are near to: the legal spellings.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

constant constexpr float kTable[4] = {1, 2, 3, 4};

struct Params {
  device const float* x;
  device float* y;
  device atomic<float>* total;
  int n;
  float scale[2];
};

struct Box {
  uint n;
  uint get() const { return n; }
};

template <class T>
inline T load(device const T* p, uint i) {
  return p[i] * T(0.5) + T(-0.25);
}
inline void add(thread float& a, float v) { a += v; }
template <class T>
inline T sum(T v) {
  return v;
}
template <class T, class... Rest>
inline T sum(T v, Rest... rest) {
  return v + sum(rest...);
}
inline float scaled(constant Params& p, float v) { return v * p.scale[1]; }

kernel void good(constant Params& p [[buffer(0)]], uint tid [[thread_index_in_threadgroup]],
                 uint3 bid [[threadgroup_position_in_grid]]) {
  threadgroup float s[32];
  Box box = {tid};
  float a = 0;
  add(a, load(p.x, box.get()));
  s[tid & 31] = a;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  thread const float* mine = &a;
  device float* y = p.y + bid.x;
  y[tid] = simd_sum(s[tid & 31]) + scaled(p, *mine) + sum(1.0f, kTable[tid & 3], 0x1p-3f) + float(as_type<uint>(a));
  simdgroup_float8x8 m = make_filled_simdgroup_matrix<float, 8, 8>(0.0f), n;
  simdgroup_load(n, (threadgroup const float*)s, 4, ulong2(0), true);
  simdgroup_multiply_accumulate(m, n, n, m);
  simdgroup_store(m, y, 8);
  atomic_fetch_add_explicit(p.total, a, memory_order_relaxed);
}
