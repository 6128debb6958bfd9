// The SKU table of the optimizer steps and of gradient clipping.
#pragma once
#include "core/row.h"
#include "ops/optim/adaptive.h"

namespace baracuda::optim {

// maximize: ascend instead of descend. amsgrad: divide by the largest second moment so far.
BCU_ATTRS(AdamAttrs, (i64, maximize), (i64, amsgrad))
BCU_ATTRS(SgdAttrs, (i64, maximize), (i64, nesterov))
BCU_ATTRS(StepAttrs, (i64, maximize))
// decoupled_weight_decay: as of AdamW.
BCU_ATTRS(DecoupledAttrs, (i64, maximize), (i64, decoupled_weight_decay))
BCU_ARGS(NormArgs, (tensors, total_norm), ())
// p: of the norm; infinity is the largest magnitude. error_if_nonfinite: whether an infinite norm or NaN is an error.
BCU_ATTRS(NormAttrs, (f64, p), (i64, error_if_nonfinite))

template <bool kDecoupled>
struct Adam {};
struct Sgd {};
struct Rmsprop {};
// Optimizers and clipping of one rule.
template <class Rule>
struct Stepped {};
struct TotalNorm {};
struct ClipWithNorm {};

// Partial results of a norm: every list is cut into at most so many parts, in the order of its elements.
inline constexpr int64_t kNormParts = 1024;
// On GPUs a part is a sum with its rounding error.
inline int64_t norm_scratch(const Problem&) { return kNormParts * 16; }

template <class Tag, class Args>
constexpr auto step(const char* op) {
  return row<Tag>(op).name("chunked").takes(kFloats).template args_of<Args>();
}

template <class Rule, class Attrs>
constexpr auto stepped(const char* op) {
  return step<Stepped<Rule>, typename Rule::Args>(op).template attrs_of<Attrs>();
}

template <bool kSimt>
constexpr auto local() {
  const auto norm = step<TotalNorm, NormArgs>("get_total_norm").attrs_of<NormAttrs>().sum(4).not_batch_invariant();
  return table(step<Adam<true>, AdamArgs>("adamw").attrs_of<AdamAttrs>().sum(9),
               step<Adam<false>, AdamArgs>("adam").attrs_of<AdamAttrs>().sum(10),
               step<Sgd, SgdArgs>("sgd").attrs_of<SgdAttrs>().sum(6), stepped<AdagradRule, StepAttrs>("adagrad").sum(9),
               step<Rmsprop, RmspropArgs>("rmsprop").attrs_of<StepAttrs>().sum(9),
               stepped<AdadeltaRule, StepAttrs>("adadelta").sum(9), stepped<AdamaxRule, StepAttrs>("adamax").sum(9),
               stepped<NadamRule, DecoupledAttrs>("nadam").sum(10), stepped<RadamRule, DecoupledAttrs>("radam").sum(10),
               stepped<LionRule, StepAttrs>("lion").sum(6), kSimt ? norm.scratch(&norm_scratch) : norm,
               step<ClipWithNorm, ClipWithNormArgs>("clip_grads_with_norm").reads(Element::F32 | Element::F64).ulp(3),
               step<Stepped<BoundRule>, ClipValueArgs>("clip_grad_value").exact());
}

inline constexpr auto kTable = local<false>() + on_cuda(local<true>()) + on_metal(local<true>());
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::optim
