// How kernels with the quantizing epilogue are launched on a GPU.
#pragma once
#include "backends/simt/family.h"
#include "ops/quant/epilogue.h"
#include "ops/quant/simt_coded_rows.h"
#include "simt/rows_launch.h"

namespace baracuda::quant {

// Whether fours of values lie together along the rows.
template <int kTensors>
bool fours(const simt::RowSpace<kTensors>& s, uint32_t rowwise) {
  if (s.inner_rank != 1 || s.length % kFour != 0) return false;
  for (int k = 0; k < kTensors; ++k) {
    if (!s.data[k] || !((rowwise >> k) & 1u)) continue;
    const uint64_t bytes = kFour * size_of(static_cast<Element>(s.element[k]));
    if (s.inner_stride[k][0] != 1 || reinterpret_cast<uintptr_t>(s.data[k]) % bytes != 0) return false;
    for (int d = 0; d < s.outer_rank; ++d)
      if (s.outer_stride[k][d] % kFour != 0) return false;
  }
  return true;
}

// Codes and scales over the sizes of what is coded, whose last dimension runs along the rows.
template <class Args>
struct CodedLaunch {
  const TensorView &y, &scale, &given;
  const IterationSpace space;

  explicit CodedLaunch(const Launch& launch)
      : y(launch[Args::y]), scale(launch[Args::scale]), given(launch[Args::given]), space(space_of(y)) {}

  uint32_t inner() const { return 1u << (space.rank - 1); }
  Operand codes() const {
    Operand o = operand(y, space);
    if (kF8Codes.has(y.element)) o.element = Element::U8;
    return o;
  }
  // Where the first scale of a row is.
  Operand scales() const {
    Operand o = scale.present() ? Operand{scale.data, scale.element, {}} : Operand{};
    for (int d = 0; scale.present() && d + 1 < space.rank; ++d)
      o.strides[d] = scale.shape[d] == 1 ? 0 : scale.strides[d];
    return o;
  }
  // Rows of `s` run along the tensors whose bit in `rowwise` is set.
  template <int kTensors>
  CodedFrame frame(int64_t group, const simt::RowSpace<kTensors>& s, uint32_t rowwise) const {
    const CodeLimits by = limits_of(y.element);
    const int64_t stride = scale.present() && scale.shape[scale.rank - 1] > 1 ? scale.strides[scale.rank - 1] : 0;
    return {given.present() ? given.data : nullptr, group, stride, by.least, by.most,
            group % kFour == 0 && fours(s, rowwise)};
  }
};

// f<Code>() for the code of an element.
template <class F>
Status with_row_code(Element code, F&& f) {
  if (code == Element::F8E4M3) return f.template operator()<EightCode<3>>();
  if (code == Element::F8E5M2) return f.template operator()<EightCode<2>>();
  return f.template operator()<WholeCode>();
}

}  // namespace baracuda::quant
