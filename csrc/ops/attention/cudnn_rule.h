// Which attention problems go to cuDNN, by what is known without it.
#pragma once
#include <limits>

#include "ops/attention/scratch.h"

namespace baracuda::attention {

inline constexpr int64_t kMostCudnnDim = 128;
// cuDNN's kernels have had 32-bit offsets.
inline constexpr int64_t kMostCudnnElements = int64_t{1} << 31;

// The backward's sums in a fixed order take memory for every score.
inline constexpr int64_t kMostOrderedBytes = int64_t{2} << 30;

inline constexpr const char* kWindowHint = "the portable row leaves out blocks of keys";
inline constexpr AttrRange kCudnnRanges[] = {
    {"window_left", -std::numeric_limits<double>::infinity(), -1, "no window", kWindowHint},
    {"softcap", 0, 0, "0.0", "the portable row caps scores"},
    {"dropout", 0, 0, "False", "the portable row drops weights"},
};

template <class Args>
Reason by_cudnn(const Problem& p) {
  const ParamMeta *q = &p.params[Args::q], *k = &p.params[Args::k], *v = &p.params[Args::v];
  if (p.alignment % 16 != 0)
    return {"alignment", "addresses that are multiples of 16, or nothing said", "the portable row takes any"};
  const int64_t d = q->shape[3], dv = v->shape[3], q_len = q->shape[2], k_len = k->shape[2];
  if (p.params[Args::mask].rank >= 0) return {"mask_shape", "no mask", "the portable row takes masks"};
  for (int i = 0; i < p.n_params; ++i)
    if (p.params[i].rank >= 0 && !p.params[i].fixed)
      return {"q_shape", "sizes that are known when the plan is selected", "give ints instead of a Dim"};
  if (d > kMostCudnnDim || dv > kMostCudnnDim) return {"q_shape", "head sizes of at most 128"};
  if (d % 8 != 0 || dv % 8 != 0 || d == 0 || dv == 0)
    return {"q_shape", "head sizes that are multiples of 8", "pad q, k and v with zeros; scale stays as it was"};
  if (q->shape[0] == 0 || k->shape[1] == 0 || q_len == 0 || k_len == 0)
    return {"q_shape", "tensors that are not empty"};
  if (is_decode(q->shape[1] / k->shape[1] * q_len, q_len))
    return {"q_shape", "more than 16 query rows per kv head", "the portable row decodes with split keys"};
  for (const ParamMeta* t : {q, k, v})
    if (t->shape[0] * t->shape[1] * t->shape[2] * t->shape[3] >= kMostCudnnElements)
      return {"q_shape", "tensors of fewer than 2^31 elements"};
  if (p.params[Args::alibi].rank >= 0) return {"alibi_shape", "no ALiBi", "the portable row takes slopes"};
  if (p.params[Args::sinks].rank >= 0) return {"sinks", "no sinks", "the portable row takes them"};
  const auto attrs = attributes<AttentionAttrs>(p);
  if (attrs.causal == 0 && attrs.window_right >= 0) return {"window_right", "no window", kWindowHint};
  const bool causal = attrs.causal != 0, bottom_right = causal && attrs.causal_alignment == 0;
  if (bottom_right && q_len > k_len)
    return {"causal_alignment", "top_left, or no more queries than keys",
            "queries without any key are left to the portable row"};
  return {};
}

inline Reason forward_by_cudnn(const Problem& p) { return by_cudnn<ForwardArgs>(p); }
inline Reason backward_by_cudnn(const Problem& p) { return by_cudnn<BackwardArgs>(p); }

}  // namespace baracuda::attention
