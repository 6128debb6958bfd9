// Launches the folds of simt/state_fold.h over any axes of a tensor.
#pragma once
#include "simt/fold_launch.h"
#include "simt/state_fold.h"

namespace baracuda::simt {

// What is folded: up to two inputs and the results, each with the dimensions of `space`, folded ones of size 1 in the
// results. Absent tensors have no data.
struct StateFold {
  IterationSpace space;
  uint32_t axes = 0;
  Operand tensors[kFoldTensors] = {};
  int kind = 0;
  Scalar number{};
  void* workspace = nullptr;  // null: rows are not cut into strips
};

// How a fold is launched, whatever it folds.
struct StateFoldPlan {
  RowSpace<kFoldTensors> s;
  TeamGrid grid;
  int64_t strips = 1, per = 0;  // strips that rows are cut into, and their positions

  StateFoldPlan(const StateFold& f, int threads) {
    const FoldDims<kFoldTensors> dims(f.space, f.axes, f.tensors, false);
    s = row_space(dims.space, dims.inner, dims.tensors);
    if (s.rows == 0) return;
    grid = teams(s, 32, threads);
    int64_t wanted = 1;
    if (f.workspace && s.rows * s.length >= kFoldSplitFrom && grid.blocks < kFoldStrips / 2) {
      const int64_t shortest = s.columns ? 64 : 4096, most = (kFoldStrips + grid.blocks - 1) / grid.blocks;
      wanted = std::max<int64_t>(1, std::min({most, s.length / shortest, kFoldPartials / s.rows}));
    }
    per = ((s.length + wanted - 1) / wanted + 7) / 8 * 8;
    if (wanted > 1) strips = (s.length + per - 1) / per;
  }
};

template <class Fold>
Status fold_states(const Launch& launch, const StateFold& f) {
  using State = typename Fold::State;
  using Rows = CodedRows<typename Fold::C>;
  const StateFoldPlan plan(f, FoldStates<Rows, Fold>::kThreads);
  if (plan.s.rows == 0) return Status::Ok;
  StateFoldParams<State> p{};
  p.s = plan.s, p.per = plan.per;
  p.kind = f.kind, p.number = number_of(f.number);
  if (plan.strips > 1) p.partial = static_cast<State*>(f.workspace), p.strips = plan.strips;
  const Status status = submit<FoldStates<Rows, Fold>>(launch, {plan.grid.blocks, plan.strips}, plan.grid.threads, p);
  if (status != Status::Ok || plan.strips == 1) return status;
  return submit<MergeStates<Fold>>(launch, {blocks_for(plan.s.rows, 128)}, 128, p);
}

// Folds floats in f32, or in f64 where the plan's element is that.
template <template <class> class Fold>
Status fold_float_states(const Launch& launch, const StateFold& f) {
#if BCU_HAS_F64
  if (launch.element == Element::F64) return fold_states<Fold<double>>(launch, f);
#endif
  return fold_states<Fold<float>>(launch, f);
}

}  // namespace baracuda::simt
