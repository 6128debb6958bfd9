// The SKU table of softmax and log_softmax.
#pragma once
#include "core/row.h"

namespace baracuda::softmax {

BCU_ATTRS(SoftmaxAttrs, (i64, axis))

// kLog: log_softmax.
template <bool kLog>
struct Forward {};
template <bool kLog>
struct Backward {};

template <class Tag>
constexpr auto base(const char* op) {
  return row<Tag>(op).name("rows").takes(kFloats).template attrs_of<SoftmaxAttrs>().in_place();
}

// Signatures: (x, y); backward (dy, y, dx).
inline constexpr auto kLocal =
    table(base<Forward<false>>("softmax").sum(4), base<Forward<true>>("log_softmax").sum(4),
          base<Backward<false>>("softmax").backward().sum(4), base<Backward<true>>("log_softmax").backward().sum(6));

inline constexpr auto kTable = everywhere(kLocal);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::softmax
