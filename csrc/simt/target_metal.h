// The vocabulary of simt.h in the Metal shading language (3.1 and later: bfloat, pointers in parameter structs).
#pragma once

namespace baracuda::simt {

using f16 = half;
using bf16 = bfloat;

struct Context {
  uint tid_, lane_, warp_, bdim_;
  uint3 bid_, gdim_;
  BCU_METHOD uint tid() const { return tid_; }
  BCU_METHOD uint bdim() const { return bdim_; }
  BCU_METHOD uint bid_x() const { return bid_.x; }
  BCU_METHOD uint bid_y() const { return bid_.y; }
  BCU_METHOD uint bid_z() const { return bid_.z; }
  BCU_METHOD uint gdim_x() const { return gdim_.x; }
  BCU_METHOD uint gdim_y() const { return gdim_.y; }
  BCU_METHOD uint lane() const { return lane_; }
  BCU_METHOD uint warp() const { return warp_; }
  BCU_METHOD uint warps() const { return bdim_ >> 5; }
};

BCU_DEVICE float widen(float x) { return x; }
BCU_DEVICE float widen(f16 x) { return float(x); }
BCU_DEVICE float widen(bf16 x) { return float(x); }
BCU_DEVICE void narrow(float x, thread float& out) { out = x; }
BCU_DEVICE void narrow(float x, thread f16& out) { out = f16(x); }
BCU_DEVICE void narrow(float x, thread bf16& out) { out = bf16(x); }

BCU_DEVICE void barrier(thread const Context&) { metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup); }
BCU_DEVICE void barrier_all(thread const Context&) {
  metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup | metal::mem_flags::mem_device);
}
BCU_DEVICE void warp_sync(thread const Context&) { metal::simdgroup_barrier(metal::mem_flags::mem_threadgroup); }

// Metal shuffles 4 byte values; wider ones travel as two halves.
template <class T>
BCU_DEVICE T shuffle(thread const Context&, T v, uint lane) {
  return metal::simd_shuffle(v, ushort(lane));
}
template <class T>
BCU_DEVICE T shuffle_xor(thread const Context&, T v, uint mask) {
  return metal::simd_shuffle_xor(v, ushort(mask));
}
template <class T>
BCU_DEVICE T shuffle_down(thread const Context&, T v, uint distance) {
  return metal::simd_shuffle_down(v, ushort(distance));
}
template <class T>
BCU_DEVICE T shuffle_up(thread const Context&, T v, uint distance) {
  return metal::simd_shuffle_up(v, ushort(distance));
}
#define BCU_SHUFFLE_WIDE(name, T)                                                           \
  BCU_DEVICE T name(thread const Context& ctx, T v, uint arg) {                             \
    uint low = name(ctx, uint(ulong(v)), arg), high = name(ctx, uint(ulong(v) >> 32), arg); \
    return T(ulong(low) | (ulong(high) << 32));                                             \
  }
BCU_SHUFFLE_WIDE(shuffle, long)
BCU_SHUFFLE_WIDE(shuffle, ulong)
BCU_SHUFFLE_WIDE(shuffle_xor, long)
BCU_SHUFFLE_WIDE(shuffle_xor, ulong)
BCU_SHUFFLE_WIDE(shuffle_down, long)
BCU_SHUFFLE_WIDE(shuffle_down, ulong)
BCU_SHUFFLE_WIDE(shuffle_up, long)
BCU_SHUFFLE_WIDE(shuffle_up, ulong)
#undef BCU_SHUFFLE_WIDE

using AtomicU32 = metal::atomic_uint;
using AtomicF32 = metal::atomic<float>;
BCU_DEVICE uint atomic_add(device AtomicU32* counter, uint v) {
  return metal::atomic_fetch_add_explicit(counter, v, metal::memory_order_relaxed);
}
BCU_DEVICE void atomic_add(device AtomicF32* sum, float v) {
  metal::atomic_fetch_add_explicit(sum, v, metal::memory_order_relaxed);
}
BCU_DEVICE uint atomic_exchange(device AtomicU32* word, uint v) {
  return metal::atomic_exchange_explicit(word, v, metal::memory_order_relaxed);
}

BCU_DEVICE uint mul_hi(uint a, uint b) { return metal::mulhi(a, b); }

}  // namespace baracuda::simt
