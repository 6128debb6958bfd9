// Matrices of 8 x 8 floats that a warp holds together, on Metal alone: GPUs of the Apple7 family and newer multiply
// them.
//
//   using Square = SquareMatrix<float>;       what bodies keep them in, and functions of all lanes of a warp together:
//   Square::clear(a)                          all zeros
//   Square::load<kTransposed>(ctx, a, from, pitch)   8 lines of 8 from shared memory, `pitch` elements from line to
//   line Square::add(ctx, sum, a, b)               sum += a b; how the 8 products are added and rounded is the GPU's
//   Square::store(ctx, a, to, pitch)
//
// Which elements a lane holds is not said: they are read from shared memory, behind a warp_sync. Other targets only
// have the name.
#pragma once
#include "simt/simt.h"
#if defined(__METAL_VERSION__)
#include <metal_simdgroup_matrix>
#endif

namespace baracuda::simt {

template <class C>
struct SquareMatrix;

#if defined(__METAL_VERSION__)
template <>
struct SquareMatrix<float> {
  metal::simdgroup_float8x8 m;
  BCU_DEVICE void clear(thread SquareMatrix& a) { a.m = metal::make_filled_simdgroup_matrix<float, 8, 8>(0.0f); }
  template <bool kTransposed>
  BCU_DEVICE void load(thread const Context&, thread SquareMatrix& a, threadgroup const float* from, int pitch) {
    metal::simdgroup_load(a.m, from, ulong(pitch), ulong2(0), kTransposed);
  }
  BCU_DEVICE void store(thread const Context&, thread SquareMatrix& a, threadgroup float* to, int pitch) {
    metal::simdgroup_store(a.m, to, ulong(pitch));
  }
  BCU_DEVICE void add(thread const Context&, thread SquareMatrix& sum, thread SquareMatrix& a, thread SquareMatrix& b) {
    metal::simdgroup_multiply_accumulate(sum.m, a.m, b.m, sum.m);
  }
};
#endif

}  // namespace baracuda::simt
