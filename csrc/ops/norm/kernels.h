// What the forward and the backward kernels of the norms share.
#pragma once
#include "backends/cpu/family.h"
#include "host/rows.h"
#include "ops/norm/skus.h"

namespace baracuda::norm {

// Which dimensions run along a row: the trailing ones of tensors shaped like x, all of a weight.
struct Masks {
  uint32_t row, all = 0xff;
  int64_t dims;

  Masks(const Launch& launch, const TensorView& x) : dims(attributes<NormAttrs>(launch).dims) {
    row = trailing_mask(x.rank, dims);
  }
  // A weight or bias, of which there may be several rows.
  RowMap parameter(const TensorView& t) const {
    return t.present() ? row_map(t, trailing_mask(t.rank, dims)) : RowMap{};
  }
  // A saved statistic: one value per row.
  RowMap statistic(const TensorView& t) const { return row_map(t, 0); }
};

// Weights with their offset; where they lie if there is none.
template <class C>
const C* read_weight(const RowMap& m, C offset, int64_t at, int64_t n, C* buffer) {
  const C* w = read(m, m.data, at, n, buffer);
  if (offset == 0) return w;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) buffer[i] = w[i] + offset;
  return buffer;
}

// sum = x + residual, rounded to the stored element.
template <class C>
void add_row(const RowMap& x, const RowMap& residual, const RowMap& sum, int64_t r, C* a, C* b) {
  const char *from = x.row(r), *more = residual.row(r);
  char* to = sum.row(r);
  for (int64_t at = 0, length = x.length(); at < length; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, length - at);
    const C *u = read(x, from, at, n, a), *v = read(residual, more, at, n, b);
    C* s = target(sum, to, at, a);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) s[i] = u[i] + v[i];
    write(sum, to, at, n, s);
  }
}

template <bool kCenter>
Status run_coded(const Launch& launch);

}  // namespace baracuda::norm

namespace baracuda {

template <class Op>
struct CpuKernel<norm::Backward<Op>> {
  static Status run(const Launch& launch);
};
template <>
struct CpuKernel<norm::BatchNorm> {
  static Status run(const Launch& launch);
};

template <bool kCenter>
struct CpuKernel<norm::CodedNorm<kCenter>> {
  static Status run(const Launch& launch) { return norm::run_coded<kCenter>(launch); }
};

}  // namespace baracuda
