// The gradient of merging partial results on GPUs: a warp per row.
#pragma once
#include "ops/attention/merge.h"
#include "simt/space.h"

namespace baracuda::attention {

struct MergeGradientProblem {
  enum : int { kDout, kDlse, kOutA, kLseA, kOutB, kLseB, kDoutA, kDlseA, kDoutB, kDlseB, kTensors };
  simt::Space<kTensors> space;  // of rows
  BCU_GLOBAL void* data[kTensors];
  int64_t column[kTensors];  // from one column to the next
  int64_t columns;
};

template <class T>
struct MergeGradient {
  using Params = MergeGradientProblem;
  using C = simt::ComputeOf<T>;
  using S = simt::Stored<T>;
  enum : int { kThreads = 256, kShared = 0 };

  BCU_DEVICE C read(BCU_CONSTANT Params& p, int k, int64_t offset, int64_t c) {
    return S::load(((BCU_GLOBAL const T*)p.data[k])[offset + c * p.column[k]]);
  }
  BCU_DEVICE void write(BCU_CONSTANT Params& p, int k, int64_t offset, int64_t c, C value) {
    ((BCU_GLOBAL T*)p.data[k])[offset + c * p.column[k]] = S::store(value);
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.warps();
    for (int64_t row = int64_t(ctx.bid_x()) * ctx.warps() + ctx.warp(); row < p.space.count; row += step) {
      int64_t at[Params::kTensors];
      simt::locate(p.space, row, at);
      MergeSlopes<C> w = merge_slopes(((BCU_GLOBAL const C*)p.data[Params::kLseA])[at[Params::kLseA]],
                                      ((BCU_GLOBAL const C*)p.data[Params::kLseB])[at[Params::kLseB]]);
      C sum = C(0);
      for (int64_t c = ctx.lane(); c < p.columns; c += 32) {
        C dy = read(p, Params::kDout, at[Params::kDout], c);
        if (w.use_a && w.use_b)
          sum += dy * (read(p, Params::kOutA, at[Params::kOutA], c) - read(p, Params::kOutB, at[Params::kOutB], c));
        write(p, Params::kDoutA, at[Params::kDoutA], c, w.use_a ? dy * w.a : C(0));
        write(p, Params::kDoutB, at[Params::kDoutB], c, w.use_b ? dy * w.b : C(0));
      }
      sum = simt::warp_reduce<simt::Add>(ctx, sum);
      if (ctx.lane() != 0u) continue;
      C dlse = ((BCU_GLOBAL const C*)p.data[Params::kDlse])[at[Params::kDlse]];
      C cross = w.use_a && w.use_b ? w.cross * sum : C(0);
      ((BCU_GLOBAL C*)p.data[Params::kDlseA])[at[Params::kDlseA]] = w.use_a ? dlse * w.a + cross : C(0);
      ((BCU_GLOBAL C*)p.data[Params::kDlseB])[at[Params::kDlseB]] = w.use_b ? dlse * w.b - cross : C(0);
    }
  }
};

}  // namespace baracuda::attention
