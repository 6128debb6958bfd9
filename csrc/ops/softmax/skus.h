// The SKU table of softmax, log_softmax and the softmax of scaled and masked values.
#pragma once
#include "core/row.h"

namespace baracuda::softmax {

BCU_ATTRS(SoftmaxAttrs, (i64, axis))

// kLog: log_softmax.
template <bool kLog>
struct Forward {};
template <bool kLog>
struct Backward {};
struct ScaledForward {};
struct ScaledBackward {};

template <class Tag>
constexpr auto base(const char* op) {
  return row<Tag>(op).name("rows").takes(kFloats).template attrs_of<SoftmaxAttrs>().in_place();
}

// Signatures: (x, y); backward (dy, y, dx). scaled_softmax (x, [mask], y) and the scalar scale, backward (dy, y, dx),
// too.
inline constexpr auto kPlain =
    table(base<Forward<false>>("softmax").sum(4), base<Forward<true>>("log_softmax").sum(4),
          base<Backward<false>>("softmax").backward().sum(4), base<Backward<true>>("log_softmax").backward().sum(6));
inline constexpr auto kScaled = table(base<ScaledForward>("scaled_softmax").sum(4).in_place_of(1),
                                      base<ScaledBackward>("scaled_softmax").backward().sum(4));
// Rows that lie side by side are computed as columns, in another order.
inline constexpr auto kOnGpus = not_alone(kPlain + kScaled);

inline constexpr auto kTable = and_alone(kPlain) + kScaled + on_cuda(kOnGpus) + on_metal(kOnGpus);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::softmax
