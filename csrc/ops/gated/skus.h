// The SKU table of the gated activations.
#pragma once
#include "core/row.h"
#include "ops/gated/math.h"

namespace baracuda::gated {

// gate_first: which half (or which tensor of a pair) the gate function is applied to.
BCU_ATTRS(GatedAttrs, (i64, split_dim), (i64, gate_first))

template <class Gate>
struct Forward {};
template <class Gate>
struct Backward {};

template <class Gate>
constexpr auto forward_row(const char* op) {
  return row<Forward<Gate>>(op).name("tiled").takes(kFloats).template attrs_of<GatedAttrs>().in_place();
}
template <class Gate>
constexpr auto backward_row(const char* op) {
  return row<Backward<Gate>>(op).backward().name("tiled").takes(kFloats).template attrs_of<GatedAttrs>().in_place();
}

inline constexpr auto kLocal =
    table(forward_row<Glu>("glu").ulp(4), forward_row<ReGlu>("reglu").ulp(1), forward_row<SwiGlu>("swiglu").ulp(5),
          forward_row<GeGlu>("geglu").sum(4), backward_row<Glu>("glu").sum(6), backward_row<ReGlu>("reglu").ulp(1),
          backward_row<SwiGlu>("swiglu").sum(6), backward_row<GeGlu>("geglu").sum(6));

inline constexpr auto kTable = everywhere(kLocal);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::gated
