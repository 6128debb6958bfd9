// The SKU table of the optimizer steps and of gradient clipping.
#pragma once
#include "core/row.h"

namespace baracuda::optim {

// maximize: ascend instead of descend. amsgrad: divide by the largest second moment so far.
BCU_ATTRS(AdamAttrs, (i64, maximize), (i64, amsgrad))
BCU_ATTRS(SgdAttrs, (i64, maximize), (i64, nesterov))
// p: of the norm; infinity is the largest magnitude. error_if_nonfinite: whether an infinite norm or NaN is an error.
BCU_ATTRS(NormAttrs, (f64, p), (i64, error_if_nonfinite))

// Tensors may be lists, all of the same length.
//   adamw, adam (grads, params, exp_avgs, exp_avg_sqs, [max_exp_avg_sqs]), all but the gradients in place
//     scalars lr, beta1, beta2, eps, weight_decay, step, grad_scale
//   sgd (grads, params, [momentum_buffers]), in place likewise
//     scalars lr, momentum, dampening, weight_decay, step, grad_scale
//   get_total_norm (tensors, total_norm)
//   clip_grads_with_norm (grads, total_norm), grads in place; scalar max_norm
//   clip_grad_value (grads), in place; scalar clip_value
template <bool kDecoupled>
struct Adam {};
struct Sgd {};
struct TotalNorm {};
struct ClipWithNorm {};
struct ClipValue {};

// Partial results of a norm: every list is cut into at most so many parts, in the order of its elements.
inline constexpr int64_t kNormParts = 1024;
// On GPUs a part is a sum with its rounding error.
inline int64_t norm_scratch(const Problem&) { return kNormParts * 16; }

template <class Tag>
constexpr auto step(const char* op) {
  return row<Tag>(op).name("chunked").takes(kFloats);
}

template <bool kSimt>
constexpr auto local() {
  const auto norm = step<TotalNorm>("get_total_norm").attrs_of<NormAttrs>().sum(4).not_batch_invariant();
  return table(step<Adam<true>>("adamw").attrs_of<AdamAttrs>().sum(9),
               step<Adam<false>>("adam").attrs_of<AdamAttrs>().sum(10), step<Sgd>("sgd").attrs_of<SgdAttrs>().sum(6),
               kSimt ? norm.scratch(&norm_scratch) : norm,
               step<ClipWithNorm>("clip_grads_with_norm").reads(Element::F32 | Element::F64).ulp(3),
               step<ClipValue>("clip_grad_value").exact());
}

inline constexpr auto kTable = local<false>() + on_cuda(local<true>()) + on_metal(local<true>());
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::optim
