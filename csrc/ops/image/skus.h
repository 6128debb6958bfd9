// The SKU table of images: resizing and its gradients.
#pragma once
#include "core/row.h"
#include "ops/image/problem.h"

namespace baracuda::image {

template <class Attrs>
struct Resized {};
template <class Attrs>
struct ResizedBackward {};

template <class Attrs>
constexpr auto forward_row(const char* op) {
  return row<Resized<Attrs>>(op)
      .template args_of<ResizeArgs>()
      .template attrs_of<Attrs>()
      .name("taps")
      .rank(kAxes + 2)
      .scratch(tables<Attrs, false>);
}
template <class Attrs>
constexpr auto backward_row(const char* op) {
  return row<ResizedBackward<Attrs>>(op)
      .backward()
      .template args_of<ResizeBackwardArgs>()
      .template attrs_of<Attrs>()
      .name("taps")
      .rank(kAxes + 2)
      .takes(kFloats)
      .scratch(tables<Attrs, true>);
}

// Sums are built in blocks of 256 terms, which bounds their error by 8 eps sqrt(K) for every K up to 2^24; those of
// weights are as long as theirs.
inline constexpr auto kNearestRow = forward_row<NearestAttrs>("resize_nearest").takes(kNumeric).exact();
inline constexpr auto kNearestBackwardRow = backward_row<NearestAttrs>("resize_nearest").sum(8);
inline constexpr auto kResizeRow = forward_row<ResizeAttrs>("resize").takes(kFloats).sum(8);
inline constexpr auto kResizeBackwardRow = backward_row<ResizeAttrs>("resize").sum(8);
inline constexpr auto kOnGpus = table(kNearestRow, kNearestBackwardRow, kResizeRow, kResizeBackwardRow);
// A single channel is never taken as one of several that are neighbours: sums then have another order on cpus.
inline constexpr auto kTable = table(kNearestRow, kNearestBackwardRow.not_batch_invariant(),
                                     kResizeRow.not_batch_invariant(), kResizeBackwardRow.not_batch_invariant()) +
                               on_cuda(kOnGpus) + on_metal(kOnGpus);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::image
