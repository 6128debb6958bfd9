// The vocabulary of simt.h in host C++, for the tests' emulator.
#pragma once
#include <cstring>

#include "baracuda/portable.h"
#include "emulator/emulator.h"

namespace baracuda::simt {

// Stored, never computed with: they have no operators.
struct f16 {
  uint16_t bits;
};
struct bf16 {
  uint16_t bits;
};

struct Context {
  emulator::Position at;
  BCU_METHOD uint32_t tid() const { return at.tid; }
  BCU_METHOD uint32_t bdim() const { return at.bdim; }
  BCU_METHOD uint32_t bid_x() const { return at.bid[0]; }
  BCU_METHOD uint32_t bid_y() const { return at.bid[1]; }
  BCU_METHOD uint32_t bid_z() const { return at.bid[2]; }
  BCU_METHOD uint32_t gdim_x() const { return at.gdim[0]; }
  BCU_METHOD uint32_t gdim_y() const { return at.gdim[1]; }
  BCU_METHOD uint32_t lane() const { return at.tid % emulator::kWarp; }
  BCU_METHOD uint32_t warp() const { return at.tid / emulator::kWarp; }
  BCU_METHOD uint32_t warps() const { return at.bdim / emulator::kWarp; }
};

// To nearest even, NaN kept, whatever instructions the machine has.
BCU_DEVICE float widen(float x) { return x; }
BCU_DEVICE float widen(f16 h) {
  uint32_t sign = uint32_t(h.bits & 0x8000u) << 16, rest = h.bits & 0x7fffu;
  if (rest >= 0x7c00u) return math::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  if (rest >= 0x400u) return math::bit_cast<float>(sign | ((rest << 13) + (112u << 23)));
  float small = float(rest) * 0x1p-24f;  // exact
  return math::bit_cast<float>(sign | math::bit_cast<uint32_t>(small));
}
BCU_DEVICE float widen(bf16 h) { return math::bit_cast<float>(uint32_t(h.bits) << 16); }
BCU_DEVICE void narrow(float x, float& out) { out = x; }
BCU_DEVICE void narrow(float x, f16& out) {
  uint32_t bits = math::bit_cast<uint32_t>(x), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
  uint32_t half = 0;
  if (rest > 0x7f800000u) {
    half = 0x7e00u | (rest >> 13 & 0x3ffu);
  } else if (rest >= 0x477ff000u) {  // 65520 and more
    half = 0x7c00u;
  } else if (rest < 0x38800000u) {  // below 2^-14: adding 0.5 leaves multiples of 2^-24 in the low bits, rounded
    float sum = math::bit_cast<float>(rest) + 0.5f;
    half = math::bit_cast<uint32_t>(sum) - 0x3f000000u;
  } else {
    half = (rest - (112u << 23) + 0xfffu + (rest >> 13 & 1u)) >> 13;
  }
  out.bits = uint16_t(sign | half);
}
BCU_DEVICE void narrow(float x, bf16& out) {
  uint32_t bits = math::bit_cast<uint32_t>(x);
  bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  out.bits = uint16_t(nan ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

BCU_DEVICE void barrier(const Context&, const emulator::Site& here = emulator::Site::current()) {
  emulator::barrier(false, here);
}
BCU_DEVICE void barrier_all(const Context&, const emulator::Site& here = emulator::Site::current()) {
  emulator::barrier(true, here);
}
BCU_DEVICE void warp_sync(const Context&, const emulator::Site& here = emulator::Site::current()) {
  emulator::warp_sync(here);
}

template <class T>
BCU_DEVICE T shuffle_value(T v, uint32_t argument, emulator::Shuffle kind, const emulator::Site& here) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves 4 or 8 bytes");
  uint64_t bits = 0;
  std::memcpy(&bits, &v, sizeof v);
  bits = emulator::shuffle(bits, argument, kind, here);
  std::memcpy(&v, &bits, sizeof v);
  return v;
}
#define BCU_SHUFFLE(name, kind)                                                                                       \
  template <class T>                                                                                                  \
  BCU_DEVICE T name(const Context&, T v, uint32_t argument, const emulator::Site& here = emulator::Site::current()) { \
    return shuffle_value(v, argument, emulator::Shuffle::kind, here);                                                 \
  }
BCU_SHUFFLE(shuffle, From)
BCU_SHUFFLE(shuffle_xor, Xor)
BCU_SHUFFLE(shuffle_down, Down)
BCU_SHUFFLE(shuffle_up, Up)
#undef BCU_SHUFFLE

// Types of their own, so that nothing reads or writes a counter past the detector.
class AtomicU32 {
  uint32_t value_;
  friend uint32_t atomic_add(AtomicU32*, uint32_t);
  friend uint32_t atomic_exchange(AtomicU32*, uint32_t);
};
class AtomicF32 {
  float value_;
  friend void atomic_add(AtomicF32*, float);
};
// Inlined, so that reports name the body's line.
inline __attribute__((always_inline)) uint32_t atomic_add(AtomicU32* counter, uint32_t v) {
  return emulator::atomic_add(&counter->value_, v);
}
inline __attribute__((always_inline)) uint32_t atomic_exchange(AtomicU32* word, uint32_t v) {
  return emulator::atomic_exchange(&word->value_, v);
}
inline __attribute__((always_inline)) void atomic_add(AtomicF32* sum, float v) {
  emulator::atomic_add(&sum->value_, v);
}

BCU_DEVICE uint32_t mul_hi(uint32_t a, uint32_t b) { return uint32_t(uint64_t{a} * b >> 32); }

}  // namespace baracuda::simt
