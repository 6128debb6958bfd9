// The tile driver: element conversion, promotion, broadcasting and rank-8 strides for every elementwise loop.
// Kernels are 1-D loops over contiguous arrays of one compute type; the driver feeds them tiles of about 1K elements
// that stay in L1, and hands over the caller's own memory where it already is contiguous and of that type.
#pragma once
#include <cstdint>
#include <span>

#include "core/launch.h"

namespace baracuda {

// One tensor as the loop sees it: strides per dimension of the iteration space, 0 where it is broadcast.
struct Operand {
  void* data = nullptr;
  Element element = Element::F32;
  int64_t strides[kMaxRank] = {};
};

struct IterationSpace {
  int32_t rank = 0;
  int64_t shape[kMaxRank] = {};

  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[i];
    return n;
  }
};

inline IterationSpace space_of(const TensorView& t) {
  IterationSpace s;
  s.rank = t.rank;
  for (int i = 0; i < t.rank; ++i) s.shape[i] = t.shape[i];
  return s;
}

// `t` broadcast to the space, aligned at the last dimension as NumPy does. Shapes have been checked before.
inline Operand operand(const TensorView& t, const IterationSpace& space) {
  Operand o{t.data, t.element, {}};
  for (int i = 0; i < t.rank; ++i) {
    int d = space.rank - t.rank + i;
    o.strides[d] = t.shape[i] == 1 ? 0 : t.strides[i];
  }
  return o;
}
// An optional output: one that the plan does not have is written nowhere.
inline Operand output_operand(const TensorView& t, const IterationSpace& space) {
  return t.present() ? operand(t, space) : Operand{};
}
// A compute-type constant as an operand that every element reads.
inline Operand constant(const void* value, Element element) { return {const_cast<void*>(value), element, {}}; }

// in[k] and out[k] point at n contiguous values; out[k] may equal in[j] when an op runs in place, so loops use
// `#pragma GCC ivdep` rather than restrict.
template <class C>
using TileLoop = void (*)(const C* const* in, C* const* out, int64_t n, const void* params);

// Instantiated for float, double, int64_t (signed integers), uint64_t (unsigned integers and bool). Stores to a
// narrower integer wrap, floats round to nearest even, bool stores are `value != 0`. At most 8 operands together. An
// output without data is not written (one of several must be); a null loop with one input and one output converts the
// one to the other.
template <class C>
void run_tiles(const IterationSpace& space, std::span<const Operand> inputs, std::span<const Operand> outputs,
               TileLoop<C> loop, const void* params);

// The same for a loop over stored halves, which converts them itself; every operand has one half element, whose bits
// are moved as they are.
void run_half_tiles(const IterationSpace& space, std::span<const Operand> inputs, std::span<const Operand> outputs,
                    TileLoop<uint16_t> loop, const void* params);

// Copies bit for bit between operands whose elements have one size (1, 2, 4, 8 or 16 bytes), whatever they are.
void copy_tiles(const IterationSpace& space, const Operand& from, const Operand& to);

}  // namespace baracuda
