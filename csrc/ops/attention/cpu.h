// The CPU kernels of attention, one file each.
#pragma once
#include "ops/attention/problem.h"

namespace baracuda::attention {

struct ForwardProblem {
  Sizes sizes;
  Rows4 q, k, v, out;
  Mask mask;
  Alibi alibi;
  const TensorView* lse;  // null: not wanted
  char* workspace;
};

struct BackwardProblem {
  Sizes sizes;
  Rows4 dout, q, k, v, out, dq, dk, dv;
  Mask mask;
  Alibi alibi;
  const TensorView& lse;
  char* workspace;
};

// Blocks of queries against blocks of keys; and few queries against many keys, split over fixed chunks of keys.
template <class C>
void forward_blocked(const ForwardProblem& problem);
template <class C>
void forward_decode(const ForwardProblem& problem);
extern template void forward_blocked<float>(const ForwardProblem&);
extern template void forward_blocked<double>(const ForwardProblem&);
extern template void forward_decode<float>(const ForwardProblem&);
extern template void forward_decode<double>(const ForwardProblem&);

template <class C>
void backward_blocked(const BackwardProblem& problem);
extern template void backward_blocked<float>(const BackwardProblem&);
extern template void backward_blocked<double>(const BackwardProblem&);

template <class C>
Status backward(const Launch& launch);
extern template Status backward<float>(const Launch&);
extern template Status backward<double>(const Launch&);

Status cache_append(const Launch& launch);
Status packed_forward(const Launch& launch);
Status packed_backward(const Launch& launch);
void merge(const Launch& launch);

inline char* lse_at(const TensorView& lse, int64_t b, int64_t h, int64_t s) {
  return lse.as<char>() + (b * lse.strides[0] + h * lse.strides[1] + s * lse.strides[2]) * size_of(lse.element);
}

}  // namespace baracuda::attention
