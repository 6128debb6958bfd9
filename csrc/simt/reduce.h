// Sums and extrema over the threads of a warp or a block, in an order that depends on the block's size alone.
#pragma once

namespace baracuda::simt {

struct Add {
  template <class T>
  BCU_DEVICE T of(T a, T b) {
    return a + b;
  }
};
// The larger; NaN wins, the first of equals stays.
struct Larger {
  template <class T>
  BCU_DEVICE T of(T a, T b) {
    return (a < b || b != b) ? b : a;
  }
};
struct Smaller {
  template <class T>
  BCU_DEVICE T of(T a, T b) {
    return (b < a || b != b) ? b : a;
  }
};

// Every lane gets the result.
template <class Op, class T>
BCU_DEVICE T warp_reduce(BCU_THREAD const Context& ctx, T v) {
  BCU_UNROLL for (uint32_t mask = 16; mask > 0; mask >>= 1) v = Op::of(v, shuffle_xor(ctx, v, mask));
  return v;
}

// Every thread gets the result. `shared` holds a T per warp; `identity` stands for warps that are not there. The
// barriers at both ends let one call follow another on the same memory.
template <class Op, class T>
BCU_DEVICE T block_reduce(BCU_THREAD const Context& ctx, T v, T identity, BCU_SHARED T* shared) {
  v = warp_reduce<Op>(ctx, v);
  if (ctx.lane() == 0u) shared[ctx.warp()] = v;
  barrier(ctx);
  v = ctx.lane() < ctx.warps() ? shared[ctx.lane()] : identity;
  v = warp_reduce<Op>(ctx, v);
  barrier(ctx);
  return v;
}

}  // namespace baracuda::simt
