// Launches merges of partial results and their gradients on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/attention/merge.h"
#include "ops/attention/merge_call.h"
#include "ops/attention/simt_merge.h"
#include "ops/attention/skus.h"
#include "simt/map_launch.h"

namespace baracuda::attention {

inline Status simt_merge(const Launch& launch) {
  using Args = MergeArgs;
  const IterationSpace elements = space_of(launch[Args::out]), rows = space_of(launch[Args::lse]);
  const simt::Input in[] = {operand(launch[Args::out_a], elements), operand(launch[Args::out_b], elements),
                            along_rows(launch[Args::lse_a]), along_rows(launch[Args::lse_b])};
  const Operand out[] = {operand(launch[Args::out], elements)};
  if (const Status status = simt::map_floats<MergedOut>(launch, elements, in, out); status != Status::Ok) return status;
  const simt::Input lse_in[] = {operand(launch[Args::lse_a], rows), operand(launch[Args::lse_b], rows)};
  const Operand lse_out[] = {operand(launch[Args::lse], rows)};
  return simt::map_floats<MergedLse>(launch, rows, lse_in, lse_out);
}

inline Status simt_merge_backward(const Launch& launch) {
  using Args = MergeBackwardArgs;
  using Params = MergeGradientProblem;
  const IterationSpace rows = space_of(launch[Args::dlse]);
  const int last = launch[Args::dout].rank - 1;
  Params p{};
  std::array<Operand, Params::kTensors> operands;
  // In the order of Params.
  constexpr int kPlaces[Params::kTensors] = {Args::dout,  Args::dlse,   Args::out_a,  Args::lse_a,  Args::out_b,
                                             Args::lse_b, Args::dout_a, Args::dlse_a, Args::dout_b, Args::dlse_b};
  for (int k = 0; k < Params::kTensors; ++k) {
    const TensorView& t = launch[kPlaces[k]];
    operands[k] = t.rank > last ? simt::leading_operand(t) : operand(t, rows);
    p.data[k] = t.data, p.column[k] = t.rank > last ? simt::last_stride(t) : 0;
  }
  p.space = simt::space_over<Params::kTensors>(rows, operands);
  p.columns = launch[Args::dout].shape[last];
  const simt::Grid grid{simt::blocks_for(p.space.count, 8)};
  return simt::with_float(launch.element,
                          [&](auto t) { return simt::submit<MergeGradient<decltype(t)>>(launch, grid, 256, p); });
}

}  // namespace baracuda::attention
