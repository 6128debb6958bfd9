// Launches connectionist temporal classification on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/loss/simt_ctc.h"
#include "ops/loss/skus.h"

namespace baracuda::loss {

template <class C, class Args>
CtcParams<C> ctc_params(const Launch& launch) {
  constexpr bool kBack = std::is_same_v<Args, CtcBackwardArgs>;
  const TensorView &scores = launch[Args::log_probs], &targets = launch[Args::targets];
  const CtcMemory memory(scores.shape, targets.rank, targets.shape, kBack, sizeof(C) == 8);
  const auto attrs = attributes<CtcAttrs>(launch);
  const auto step = [](const TensorView& t, int i) { return t.shape[i] > 1 ? t.strides[i] : 0; };
  CtcParams<C> p{};
  char* const at = static_cast<char*>(launch.workspace);
  const auto whole = [&](int64_t offset) { return reinterpret_cast<int64_t*>(at + offset); };
  p.scores = scores.data, p.targets = targets.data;
  p.input_lengths = launch[Args::input_lengths].data, p.target_lengths = launch[Args::target_lengths].data;
  p.states = reinterpret_cast<C*>(at + memory.states), p.losses = reinterpret_cast<C*>(at + memory.losses);
  p.starts = whole(memory.starts), p.counts = whole(memory.counts), p.lengths = whole(memory.lengths);
  p.ids = whole(memory.ids), p.next = whole(memory.next);
  p.steps = memory.steps, p.samples = memory.samples, p.classes = memory.classes, p.rows = memory.rows;
  p.apart = targets.rank == 2, p.labels = targets.shape[p.apart], p.blank = attrs.blank;
  p.score_step = step(scores, 0), p.score_sample = step(scores, 1), p.score_class = step(scores, 2);
  if (p.apart) p.target_row = step(targets, 0);
  p.target_step = step(targets, p.apart);
  p.input_step = step(launch[Args::input_lengths], 0), p.length_step = step(launch[Args::target_lengths], 0);
  p.fault = simt::fault_of(launch), p.row = launch.row, p.tensor = Args::targets;
  p.element = static_cast<int32_t>(launch.element), p.index_element = static_cast<int32_t>(targets.element);
  p.zero_infinity = static_cast<int32_t>(attrs.zero_infinity);
  const TensorView& made = launch[kBack ? int(CtcBackwardArgs::dlog_probs) : int(CtcArgs::loss)];
  p.made = made.data, p.made_sample = step(made, kBack);
  if constexpr (kBack) {
    p.made_step = step(made, 0), p.made_class = step(made, 2);
    p.dloss = launch[Args::dloss].data, p.dloss_step = step(launch[Args::dloss], 0);
  }
  return p;
}

template <class C, class Args>
Status submit_ctc(const Launch& launch) {
  constexpr bool kBack = std::is_same_v<Args, CtcBackwardArgs>;
  const CtcParams<C> p = ctc_params<C, Args>(launch);
  if (p.samples == 0) return Status::Ok;
  Status s = simt::submit<CtcLengths<C>>(launch, {1}, CtcLengths<C>::kThreads, p);
  using States = CtcStates<C, kBack>;
  if (s == Status::Ok) s = simt::submit<States>(launch, {simt::blocks_for(p.samples, 1)}, States::kThreads, p);
  if (!kBack || s != Status::Ok || p.steps == 0) return s;
  using Slope = CtcSlope<C>;
  return simt::submit<Slope>(launch, {simt::blocks_for(p.steps * p.samples, 1)}, Slope::kThreads, p);
}

template <class Args>
Status run_ctc(const Launch& launch) {
#if BCU_HAS_F64
  if (launch.element == Element::F64) return submit_ctc<double, Args>(launch);
#endif
  return submit_ctc<float, Args>(launch);
}

}  // namespace baracuda::loss

namespace baracuda {

template <>
struct SimtKernel<loss::Ctc> {
  static Status run(const Launch& launch) { return loss::run_ctc<loss::CtcArgs>(launch); }
};

template <>
struct SimtKernel<loss::CtcBackward> {
  static Status run(const Launch& launch) { return loss::run_ctc<loss::CtcBackwardArgs>(launch); }
};

}  // namespace baracuda
