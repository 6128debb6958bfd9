// Tensors with and without their folded dimensions.
#pragma once
#include "core/launch.h"

namespace baracuda::reduce {

// `t` with the rank of `full`: folded dimensions of size 1 put back where keepdim left them out.
inline TensorView with_folded(const TensorView& t, const TensorView& full, uint32_t axes) {
  if (t.rank == full.rank) return t;
  TensorView out = t;
  out.rank = full.rank;
  for (int i = 0, at = 0; i < full.rank; ++i) {
    const bool fold = (axes >> i) & 1u;
    out.shape[i] = fold ? 1 : t.shape[at];
    out.strides[i] = fold ? 0 : t.strides[at];
    at += !fold;
  }
  return out;
}

// A contiguous tensor of one number for each set of folded elements of x, with x's rank.
inline TensorView kept_view(void* data, Element element, const TensorView& x, uint32_t axes) {
  TensorView t = x;
  t.data = data;
  t.element = element;
  int64_t stride = 1;
  for (int i = x.rank - 1; i >= 0; --i) {
    t.shape[i] = (axes >> i) & 1u ? 1 : x.shape[i];
    t.strides[i] = stride;
    stride *= t.shape[i];
  }
  return t;
}

inline int64_t folded_count(const TensorView& x, uint32_t axes) {
  int64_t n = 1;
  for (int i = 0; i < x.rank; ++i) n *= (axes >> i) & 1u ? x.shape[i] : 1;
  return n;
}

// `small` with the rank of `large`, which it broadcasts to; *axes are the dimensions along which it does.
inline TensorView aligned(const TensorView& small, const TensorView& large, uint32_t* axes) {
  TensorView t = small;
  t.rank = large.rank;
  *axes = 0;
  const int lead = large.rank - small.rank;
  for (int i = 0; i < large.rank; ++i) {
    t.shape[i] = i < lead ? 1 : small.shape[i - lead];
    t.strides[i] = i < lead ? 0 : small.strides[i - lead];
    if (t.shape[i] == 1 && large.shape[i] != 1) *axes |= 1u << i;
  }
  return t;
}

}  // namespace baracuda::reduce
