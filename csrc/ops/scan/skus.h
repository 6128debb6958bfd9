// The SKU table of running sums, products, extremes and logarithms of sums of exponentials.
#pragma once
#include "core/row.h"

namespace baracuda::scan {

BCU_ATTRS(ScanAttrs, (i64, axis))
BCU_ARGS(ScanArgs, (x, y), ())
BCU_ARGS(SumBackwardArgs, (dy, dx), ())
BCU_ARGS(ResultBackwardArgs, (dy, x, y, dx), ())  // of cumprod and logcumsumexp
BCU_ARGS(ExtremeArgs, (x, values, indices), ())

template <bool kProduct>
struct Running {};
template <bool kMax>
struct RunningExtreme {};
struct LogSumExp {};
template <class Op>
struct Backward {};

// Elements of a line, or lines side by side, that are taken at once.
inline constexpr int64_t kTile = 1024;

template <class Tag, class Args = ScanArgs>
constexpr auto base(const char* op) {
  return row<Tag>(op).name("lines").template args_of<Args>().template attrs_of<ScanAttrs>();
}

inline constexpr Elements kIntegers = kInts | kBool;

// Integers give i64.
inline constexpr auto kLocal =
    table(base<Running<false>>("cumsum").takes(kFloats).sum(2).in_place(),
          base<Running<true>>("cumprod").takes(kFloats).sum(2).in_place(),
          base<Backward<Running<false>>, SumBackwardArgs>("cumsum").backward().takes(kFloats).sum(2).in_place(),
          base<Backward<Running<true>>, ResultBackwardArgs>("cumprod").backward().takes(kFloats).sum(4),
          base<LogSumExp>("logcumsumexp").takes(kFloats).sum(1),
          base<Backward<LogSumExp>, ResultBackwardArgs>("logcumsumexp").backward().takes(kFloats).sum(1));
inline constexpr auto kExtremes = table(base<RunningExtreme<true>, ExtremeArgs>("cummax").takes(kReal).exact(),
                                        base<RunningExtreme<false>, ExtremeArgs>("cummin").takes(kReal).exact());
inline constexpr auto kWhole = table(base<Running<false>>("cumsum").name("integer").takes(kIntegers).exact(),
                                     base<Running<true>>("cumprod").name("integer").takes(kIntegers).exact());
// GPUs compute lines that lie side by side as columns, in another order.
inline constexpr auto kOnGpus = join(not_alone(kLocal), kWhole, kExtremes);

inline constexpr auto kTable = join(kLocal, kWhole, kExtremes, on_cuda(kOnGpus), on_metal(kOnGpus));
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::scan
