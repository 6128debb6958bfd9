// Launches drawing from logits on a GPU.
#pragma once
#include <cmath>

#include "backends/simt/family.h"
#include "ops/sampling/simt.h"
#include "ops/sampling/simt_draft.h"
#include "ops/sampling/skus.h"
#include "simt/launch.h"

namespace baracuda::sampling {

static_assert(int{kColumns} == kControls && int{kTemperature} == SampleArgs::temperature &&
              int{kFrequency} == SampleArgs::frequency);

// Strides of rows and of tokens, 0 where a tensor is broadcast.
inline void strides_of(const TensorView& t, int rank, int64_t& row, int64_t& step) {
  const auto at = [&](int d) { return d < 0 || t.shape[d] == 1 ? 0 : t.strides[d]; };
  row = rank > 1 ? at(t.rank - 2) : 0, step = at(t.rank - 1);
}

inline Status row_params(const Launch& launch, RowParams& p) {
  using Args = SampleArgs;
  const TensorView &logits = launch[Args::logits], &counts = launch[Args::counts], &mask = launch[Args::mask];
  const TensorView &controls = launch[Args::controls], &y = launch[Args::y];
  const int rank = logits.rank;
  p.logits = logits.data, p.y = y.data;
  p.rows = rank > 1 ? logits.shape[0] : 1, p.tokens = logits.shape[rank - 1];
  strides_of(logits, rank, p.logits_row, p.logits_step);
  if (y.rank < rank) {  // a token for each row
    p.samples = 1, p.y_row = rank > 1 ? y.strides[0] : 0, p.y_step = 0;
  } else {
    p.samples = y.shape[rank - 1];
    strides_of(y, rank, p.y_row, p.y_step);
  }
  if (counts.present()) p.counts = counts.data, strides_of(counts, rank, p.counts_row, p.counts_step);
  if (mask.present()) p.mask = mask.data, strides_of(mask, rank, p.mask_row, p.mask_step);
  if (controls.present()) p.controls = controls.data, strides_of(controls, rank, p.controls_row, p.controls_step);
  for (int c = 0; c < kControls && !controls.present(); ++c) {
    const Scalar& number = launch.scalars[c];
    p.numbers[c] = simt::number_of(number);
    if (!number.data && !in_range(p.numbers[c].f, c)) {
      if (launch.failure) *launch.failure = {-1, c, 0, int64_t(-2) - range_of(c)};
      return Status::InvalidProblem;
    }
  }
  p.fault = simt::fault_of(launch), p.row = launch.row;
  p.logits_element = static_cast<int32_t>(logits.element), p.y_element = static_cast<int32_t>(y.element);
  p.logits_tensor = Args::logits, p.controls_tensor = Args::controls;
  return Status::Ok;
}

// What the launches of chains and of trees have in common.
template <class Args>
DraftParams places_of(const Launch& launch, const TensorView& tokens) {
  const TensorView &target = launch[Args::target], &y = launch[Args::y], &accepted = launch[Args::accepted];
  DraftParams p{};
  p.draft_tokens = tokens.data, p.target = target.data;
  p.y = y.as<int64_t>(), p.accepted = accepted.as<int64_t>();
  p.rows = target.shape[0], p.drafted = tokens.shape[1], p.vocabulary = target.shape[2];
  for (int d = 0; d < 3; ++d) p.target_strides[d] = target.strides[d];
  for (int d = 0; d < 2; ++d) p.token_strides[d] = tokens.strides[d], p.y_strides[d] = y.strides[d];
  p.accepted_stride = accepted.strides[0];
  p.seed = simt::number_of(launch.scalars[Args::seed]), p.offset = simt::number_of(launch.scalars[Args::offset]);
  p.fault = simt::fault_of(launch), p.row = launch.row;
  p.token_element = static_cast<int32_t>(tokens.element), p.target_element = static_cast<int32_t>(target.element);
  p.target_tensor = Args::target;
  return p;
}
inline DraftParams chain_params(const Launch& launch) {
  using Args = VerifyArgs;
  const TensorView& draft = launch[Args::draft];
  DraftParams p = places_of<Args>(launch, launch[Args::draft_tokens]);
  p.draft = draft.data, p.draft_element = static_cast<int32_t>(draft.element);
  for (int d = 0; d < 3; ++d) p.draft_strides[d] = draft.strides[d];
  p.draft_tensor = Args::draft, p.token_tensor = Args::draft_tokens;
  return p;
}
inline DraftParams tree_params(const Launch& launch) {
  using Args = TreeArgs;
  const TensorView &parents = launch[Args::parents], &path = launch[Args::path];
  DraftParams p = places_of<Args>(launch, launch[Args::tokens]);
  p.parents = parents.data, p.path = path.as<int64_t>(), p.parent_tensor = Args::parents;
  for (int d = 0; d < 2; ++d) p.parent_strides[d] = parents.strides[d], p.path_strides[d] = path.strides[d];
  return p;
}

}  // namespace baracuda::sampling

namespace baracuda {

template <>
struct SimtKernel<sampling::Sample> {
  static Status run(const Launch& launch) {
    sampling::RowParams p{};
    const Status status = sampling::row_params(launch, p);
    if (status != Status::Ok || p.samples == 0) return status;
    p.seed = simt::number_of(launch.scalars[sampling::SampleArgs::seed]);
    p.offset = simt::number_of(launch.scalars[sampling::SampleArgs::offset]);
    using Body = sampling::DrawTokens;
    return simt::submit<Body>(launch, {simt::blocks_for(p.rows, 1)}, Body::kThreads, p);
  }
};
template <>
struct SimtKernel<sampling::Filter> {
  static Status run(const Launch& launch) {
    sampling::RowParams p{};
    const Status status = sampling::row_params(launch, p);
    if (status != Status::Ok || p.tokens == 0) return status;
    p.probabilities = attributes<sampling::FilterAttrs>(launch).probabilities != 0;
    using Body = sampling::FilterTokens;
    return simt::submit<Body>(launch, {simt::blocks_for(p.rows, 1)}, Body::kThreads, p);
  }
};

template <>
struct SimtKernel<sampling::Verify> {
  static Status run(const Launch& launch) {
    const sampling::DraftParams p = sampling::chain_params(launch);
    using Body = sampling::VerifyDraft;
    return simt::submit<Body>(launch, {simt::blocks_for(p.rows, 1)}, Body::kThreads, p);
  }
};
template <>
struct SimtKernel<sampling::VerifyTree> {
  static Status run(const Launch& launch) {
    const sampling::DraftParams p = sampling::tree_params(launch);
    using Body = sampling::WalkTree;
    return simt::submit<Body>(launch, {simt::blocks_for(p.rows, 1)}, Body::kThreads, p);
  }
};

}  // namespace baracuda
