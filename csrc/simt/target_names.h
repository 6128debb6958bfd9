// The vocabulary of simt.h as names alone, for a host that launches kernels of a .metal text: it needs what bodies call
// their parameters and how those lie in memory, and no body runs on it.
#pragma once
#include <cstdint>

#include "baracuda/portable.h"

namespace baracuda::simt {

struct f16 {
  uint16_t bits;
};
struct bf16 {
  uint16_t bits;
};

struct Context {
  uint32_t tid() const, bdim() const, bid_x() const, bid_y() const, bid_z() const, gdim_x() const, gdim_y() const;
  uint32_t lane() const, warp() const, warps() const;
};

float widen(float), widen(f16), widen(bf16);
void narrow(float, float&), narrow(float, f16&), narrow(float, bf16&);
void barrier(const Context&), barrier_all(const Context&), warp_sync(const Context&);

template <class T>
T shuffle(const Context&, T, uint32_t lane);
template <class T>
T shuffle_xor(const Context&, T, uint32_t mask);
template <class T>
T shuffle_down(const Context&, T, uint32_t distance);
template <class T>
T shuffle_up(const Context&, T, uint32_t distance);

struct AtomicU32 {
  uint32_t value;
};
struct AtomicF32 {
  float value;
};
uint32_t atomic_add(AtomicU32*, uint32_t), atomic_exchange(AtomicU32*, uint32_t);
void atomic_add(AtomicF32*, float);

uint32_t mul_hi(uint32_t, uint32_t);

// Of simt/mma.h, which Metal does without.
template <class T>
struct Mma;
template <bool kTransposed>
void load_matrices(const Context&, const void* row, uint32_t* out);
struct CopyQueue {
  void copy(void* to, const void* from, int bytes), commit();
  template <int kGroups>
  void wait();
};

}  // namespace baracuda::simt
