// The tile driver: element conversion, promotion, broadcasting and rank-8 strides for every elementwise loop.
// Kernels are 1-D loops over contiguous arrays of one compute type; the driver feeds them tiles of about 1K elements
// that stay in L1, and hands over the caller's own memory where it already is contiguous and of that type.
#pragma once
#include <cstdint>
#include <span>

#include "core/operand.h"

namespace baracuda {

// in[k] and out[k] point at n contiguous values; out[k] may equal in[j] when an op runs in place, so loops use
// `#pragma GCC ivdep` rather than restrict.
template <class C>
using TileLoop = void (*)(const C* const* in, C* const* out, int64_t n, const void* params);

// A loop, and for functions of a few instructions what reads input k once, at in[k][0], where it is one value all along
// the run: a column, a number. Without it such a value is repeated in a buffer. Such functions of two values also
// stream whole lines of their one output themselves: computed by pieces, results leave in bursts, for which reading
// waits.
template <class C>
struct TileLoops {
  TileLoop<C> loop;
  TileLoop<C> repeated[2] = {};
  TileLoop<C> streamed = nullptr;

  TileLoops(TileLoop<C> only = nullptr) : loop(only) {}
  TileLoops(TileLoop<C> of_runs, TileLoop<C> first, TileLoop<C> second, TileLoop<C> of_lines)
      : loop(of_runs), repeated{first, second}, streamed(of_lines) {}

  uint32_t repeatable() const { return (repeated[0] ? 1u : 0u) | (repeated[1] ? 2u : 0u); }  // bit k: input k
};

// Instantiated for float, double, int64_t (signed integers), uint64_t (unsigned integers and bool). Stores to a
// narrower integer wrap, floats round to nearest even, bool stores are `value != 0`. At most 24 operands together. An
// output without data is not written (one of several must be); a null loop with one input and one output converts the
// one to the other.
template <class C>
void run_tiles(const IterationSpace& space, std::span<const Operand> inputs, std::span<const Operand> outputs,
               TileLoops<C> loops, const void* params);

// The same for a loop over stored halves, which converts them itself; every operand has one half element, whose bits
// are moved as they are.
void run_half_tiles(const IterationSpace& space, std::span<const Operand> inputs, std::span<const Operand> outputs,
                    TileLoops<uint16_t> loops, const void* params);

// Copies bit for bit between operands whose elements have one size (1, 2, 4, 8 or 16 bytes), whatever they are.
void copy_tiles(const IterationSpace& space, const Operand& from, const Operand& to);

}  // namespace baracuda
