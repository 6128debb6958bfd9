// Tensors and their scales as loops walk them, on every backend: where m scales stand for n values of a dimension, it
// is cut into m blocks of n / m.
#pragma once
#include "core/operand.h"
#include "ops/quant/skus.h"

namespace baracuda::quant {

class ScaleSpace {
 public:
  ScaleSpace(const TensorView& x, const TensorView& scale) {
    for (int i = 0; i < x.rank; ++i) {
      const int64_t n = x.shape[i], m = scale.shape[i];
      if (m > 1 && m != n) {
        add(i, m, n / m, true), add(i, n / m, 1, false);
      } else {
        add(i, n, 1, m == n);
      }
    }
  }

  // Bit i: dimension i of the space runs over values that share a scale.
  uint32_t shared() const { return shared_; }
  IterationSpace space() const {
    IterationSpace s;
    s.rank = rank_;
    for (int d = 0; d < rank_; ++d) s.shape[d] = dims_[d].size;
    return s;
  }
  // 8-bit floats travel as their codes.
  TensorView values(const TensorView& t) const {
    TensorView v = t;
    v.rank = rank_;
    if (kF8Codes.has(t.element)) v.element = Element::U8;
    for (int d = 0; d < rank_; ++d) v.shape[d] = dims_[d].size, v.strides[d] = t.strides[dims_[d].from] * dims_[d].step;
    return v;
  }
  TensorView scales(const TensorView& t) const {
    TensorView v = t;
    v.rank = rank_;
    for (int d = 0; d < rank_; ++d) {
      v.shape[d] = dims_[d].has_scales ? dims_[d].size : 1;
      v.strides[d] = dims_[d].has_scales ? t.strides[dims_[d].from] : 0;
    }
    return v;
  }

 private:
  struct Dimension {
    int from;
    int64_t size, step;
    bool has_scales;
  };
  void add(int from, int64_t size, int64_t step, bool has_scales) {
    if (!has_scales) shared_ |= 1u << rank_;
    dims_[rank_++] = {from, size, step, has_scales};
  }

  Dimension dims_[kMaxRank];
  int rank_ = 0;
  uint32_t shared_ = 0;
};

}  // namespace baracuda::quant
