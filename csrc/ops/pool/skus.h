// The SKU table of pooling and its gradients.
#pragma once
#include "core/row.h"
#include "ops/pool/problem.h"

namespace baracuda::pool {

template <Windows kWindows>
struct Max {};
template <Windows kWindows>
struct MaxBackward {};
template <Windows kWindows>
struct Mean {};
template <Windows kWindows>
struct MeanBackward {};

template <Windows kWindows, class Attrs, class Tag>
constexpr auto based(RowOf<Tag> r) {
  const auto named = r.name("windows").rank(kAxes + 2);
  if constexpr (kWindows == Windows::Sized)
    return named.template attrs_of<Attrs>();
  else
    return named;
}
template <Windows kWindows>
constexpr auto means(const char* mean) {
  return based<kWindows, MeanAttrs>(row<Mean<kWindows>>(mean).template args_of<MeanArgs>().takes(kFloats).sum(8));
}
// Sums are built in blocks of 256 terms, which bounds their error by 8 eps sqrt(K) for every K up to 2^24.
template <Windows kWindows>
constexpr auto others(const char* max, const char* mean) {
  return table(
      based<kWindows, MaxAttrs>(row<Max<kWindows>>(max).template args_of<MaxArgs>().takes(kNumeric).exact()),
      based<kWindows, MaxAttrs>(
          row<MaxBackward<kWindows>>(max).backward().template args_of<MaxBackwardArgs>().takes(kFloats).sum(8)),
      based<kWindows, MeanAttrs>(
          row<MeanBackward<kWindows>>(mean).backward().template args_of<MeanBackwardArgs>().takes(kFloats).sum(8)));
}

// A single channel is never taken as one of several that are neighbours: means then have another order on cpus.
inline constexpr auto kSized = means<Windows::Sized>("avg_pool");
inline constexpr auto kParts = means<Windows::Parts>("adaptive_avg_pool");
inline constexpr auto kMeans = table(kSized, kParts);
inline constexpr auto kTable = table(kSized.not_batch_invariant(), kParts.not_batch_invariant()) + on_cuda(kMeans) +
                               on_metal(kMeans) +
                               everywhere(others<Windows::Sized>("max_pool", "avg_pool") +
                                          others<Windows::Parts>("adaptive_max_pool", "adaptive_avg_pool"));
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::pool
