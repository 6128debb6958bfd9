// The SKU table of softmax, log_softmax and the softmax of scaled and masked values.
#pragma once
#include "core/row.h"

namespace baracuda::softmax {

BCU_ATTRS(SoftmaxAttrs, (i64, axis))
BCU_ARGS(SoftmaxArgs, (x, y), ())
BCU_ARGS(SoftmaxBackwardArgs, (dy, y, dx), ())
BCU_ARGS(ScaledArgs, (x, mask, y), (scale))
BCU_ARGS(ScaledBackwardArgs, (dy, y, dx), (scale))

// kLog: log_softmax.
template <bool kLog>
struct Forward {};
template <bool kLog>
struct Backward {};
// kSquared: entmax15, else sparsemax.
template <bool kSquared>
struct SparseForward {};
template <bool kSquared>
struct SparseBackward {};
struct ScaledForward {};
struct ScaledBackward {};

template <class Tag, class Args>
constexpr auto base(const char* op) {
  return row<Tag>(op).name("rows").takes(kFloats).template args_of<Args>().template attrs_of<SoftmaxAttrs>().in_place();
}

inline constexpr auto kPlain =
    table(base<Forward<false>, SoftmaxArgs>("softmax").sum(4), base<Forward<true>, SoftmaxArgs>("log_softmax").sum(4),
          base<Backward<false>, SoftmaxBackwardArgs>("softmax").backward().sum(4),
          base<Backward<true>, SoftmaxBackwardArgs>("log_softmax").backward().sum(6));
inline constexpr auto kScaled =
    table(base<ScaledForward, ScaledArgs>("scaled_softmax").sum(4).in_place_of(1u << ScaledArgs::x),
          base<ScaledBackward, ScaledBackwardArgs>("scaled_softmax").backward().sum(4));
inline constexpr auto kSparse = table(base<SparseForward<false>, SoftmaxArgs>("sparsemax").sum(1),
                                      base<SparseForward<true>, SoftmaxArgs>("entmax15").sum(1),
                                      base<SparseBackward<false>, SoftmaxBackwardArgs>("sparsemax").backward().sum(2),
                                      base<SparseBackward<true>, SoftmaxBackwardArgs>("entmax15").backward().sum(2));
// Rows that lie side by side are computed as columns, in another order.
inline constexpr auto kOnGpus = not_alone(kPlain + kScaled);

inline constexpr auto kTable =
    join(and_alone(kPlain), kScaled, on_cuda(kOnGpus), on_metal(kOnGpus), everywhere(kSparse));
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::softmax
