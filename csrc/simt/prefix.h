// Sums of what comes before: over the lanes of a warp, and over numbers in memory.
#pragma once
#include "simt/simt.h"

namespace baracuda::simt {

// The sum over all lanes up to this one.
template <class T>
BCU_DEVICE T warp_upto(BCU_THREAD const Context& ctx, T v) {
  for (uint32_t distance = 1; distance < 32u; distance *= 2u) {
    T other = shuffle_up(ctx, v, distance);
    v += ctx.lane() >= distance ? other : T(0);
  }
  return v;
}

// For a grid of one block: the n numbers become the sums of those before them. Every thread gets the sum of all.
// `shared` holds a T per warp.
template <class T>
BCU_DEVICE T running_sums(BCU_THREAD const Context& ctx, BCU_SHARED T* shared, BCU_GLOBAL T* data, int64_t n) {
  T before = T(0);
  for (int64_t base = 0; base < n; base += ctx.bdim()) {
    int64_t at = base + ctx.tid();
    T mine = at < n ? data[at] : T(0), upto = warp_upto(ctx, mine);
    if (ctx.lane() == 31u) shared[ctx.warp()] = upto;
    barrier(ctx);
    T all = T(0);
    for (uint32_t w = 0; w < ctx.warps(); ++w) {
      if (w == ctx.warp()) upto += all;
      all += shared[w];
    }
    if (at < n) data[at] = before + upto - mine;
    before += all;
    barrier(ctx);
  }
  return before;
}

}  // namespace baracuda::simt
