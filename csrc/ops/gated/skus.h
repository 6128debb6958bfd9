// The SKU table of the gated activations.
#pragma once
#include "core/row.h"
#include "ops/gated/math.h"
#include "ops/quant/epilogue.h"

namespace baracuda::gated {

// gate_first: which half (or which tensor of a pair) the gate function is applied to.
BCU_ATTRS(GatedAttrs, (i64, split_dim), (i64, gate_first))
BCU_ARGS(ForwardArgs, (x, value, gate, y), ())
BCU_ARGS(BackwardArgs, (dy, x, value, gate, dx, dvalue, dgate), ())

// Codes of y (quant/epilogue.h), in rows along its last dimension.
BCU_ATTRS(CodedAttrs, (i64, split_dim), (i64, gate_first), (i64, group))
BCU_ARGS(CodedArgs, (x, value, gate, given, y, scale), ())

template <class Gate>
struct Forward {};
template <class Gate>
struct Coded {};
template <class Gate>
struct Backward {};

template <class Tag, class Args>
constexpr auto base(const char* op) {
  const auto plain = row<Tag>(op).name("tiled").takes(kFloats).in_place();
  return plain.template args_of<Args>().template attrs_of<GatedAttrs>();
}
template <class Gate>
constexpr auto forward_row(const char* op) {
  return base<Forward<Gate>, ForwardArgs>(op);
}
template <class Gate>
constexpr auto backward_row(const char* op) {
  return base<Backward<Gate>, BackwardArgs>(op).backward();
}

inline constexpr auto kLocal =
    table(forward_row<Glu>("glu").ulp(4), forward_row<ReGlu>("reglu").ulp(1), forward_row<SwiGlu>("swiglu").ulp(5),
          forward_row<GeGlu>("geglu").sum(4), backward_row<Glu>("glu").sum(6), backward_row<ReGlu>("reglu").ulp(1),
          backward_row<SwiGlu>("swiglu").sum(6), backward_row<GeGlu>("geglu").sum(6));

// The bound of f32 values, in units of scales, before they become codes.
template <class Gate>
constexpr auto coded_row(const char* op) {
  const auto plain = row<Coded<Gate>>(op).name("codes").takes(quant::kRowValues, quant::kRowCodes);
  return plain.template args_of<CodedArgs>().template attrs_of<CodedAttrs>().sum(6);
}
inline constexpr auto kCoded = table(coded_row<Glu>("glu_quantize"), coded_row<ReGlu>("reglu_quantize"),
                                     coded_row<SwiGlu>("swiglu_quantize"), coded_row<GeGlu>("geglu_quantize"));

inline constexpr auto kTable = everywhere(kLocal) + everywhere(kCoded);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::gated
