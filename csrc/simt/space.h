// An index space that several tensors share: which element of each belongs to an index. Dimension 0 is the innermost.
#pragma once
#include "simt/map.h"

namespace baracuda::simt {

enum : int { kSpaceDims = kMaxDims + 1 };  // a tensor's, and the units of a row

template <int kTensors>
struct Space {
  int64_t stride[kTensors][kSpaceDims];  // in elements
  int64_t shape[kSpaceDims];
  Divider divider[kSpaceDims];
  int64_t count;
  int32_t rank;
  int32_t narrow;  // all indices are below 2^31
};

// Element offsets of index `at` in every tensor. Returns the coordinate in dimension 0.
template <int kTensors>
BCU_DEVICE int64_t locate(BCU_CONSTANT Space<kTensors>& s, int64_t at, BCU_THREAD int64_t* offset) {
  BCU_UNROLL for (int k = 0; k < kTensors; ++k) offset[k] = 0;
  int64_t rest = at, first = 0;
  for (int d = 0; d < s.rank; ++d) {
    int64_t c = rest;
    if (d + 1 < s.rank) {
      rest =
          s.narrow ? int64_t(quotient(s.divider[d], uint32_t(rest))) : int64_t(uint64_t(rest) / uint64_t(s.shape[d]));
      c -= rest * s.shape[d];
    }
    BCU_UNROLL for (int k = 0; k < kTensors; ++k) offset[k] += c * s.stride[k][d];
    if (d == 0) first = c;
  }
  return first;
}

}  // namespace baracuda::simt
