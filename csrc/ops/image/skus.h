// The SKU table of images: resizing, sampling by a grid, sums of windows, suppression of boxes, means over regions,
// and gradients.
#pragma once
#include "core/row.h"
#include "ops/image/boxes.h"
#include "ops/image/folding.h"
#include "ops/image/problem.h"
#include "ops/image/regions.h"
#include "ops/image/sampling.h"

namespace baracuda::image {

template <class Attrs>
struct Resized {};
template <class Attrs>
struct ResizedBackward {};

struct Sample {};
struct SampleBackward {};
struct Folds {};
struct Nms {};
struct RoiAlign {};
struct RoiAlignBackward {};
struct RoiPool {};

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

// Positions are rounded, too: the reference counts what a term changes with them as part of its size.
inline constexpr auto kSampleRow = row<Sample>("grid_sample")
                                       .args_of<SampleArgs>()
                                       .attrs_of<SampleAttrs>()
                                       .name("taps")
                                       .rank(kAxes + 2)
                                       .takes(kFloats)
                                       .sum(5);
constexpr auto sample_backward_row(WorkspaceRule workspace, ExtraCheck check) {
  return row<SampleBackward>("grid_sample")
      .backward()
      .args_of<SampleBackwardArgs>()
      .attrs_of<SampleAttrs>()
      .name("taps")
      .rank(kAxes + 2)
      .takes(kFloats)
      .sum(8)
      .scratch(workspace)
      .only_if(check);
}
inline constexpr auto kSampleOnGpus = table(kSampleRow, sample_backward_row(simt_sample_workspace, sample_entries_fit));
inline constexpr auto kFolds = table(
    row<Folds>("fold").args_of<FoldArgs>().attrs_of<FoldAttrs>().name("windows").rank(kAxes + 2).takes(kFloats).sum(8));
constexpr auto nms_row(WorkspaceRule workspace, ExtraCheck check) {
  return row<Nms>("nms")
      .args_of<NmsArgs>()
      .attrs_of<NmsAttrs>()
      .name("sorted")
      .rank(2)
      .takes(kFloats, kIndex)
      .exact()
      .scratch(workspace)
      .only_if(check);
}
inline constexpr auto kNmsOnGpus = table(nms_row(simt_nms_workspace, boxes_fit));
// Positions of samples are rounded, too; the reference counts that.
inline constexpr auto kRoiRow = row<RoiAlign>("roi_align")
                                    .args_of<RoiAlignArgs>()
                                    .attrs_of<RoiAlignAttrs>()
                                    .name("samples")
                                    .rank(4)
                                    .takes(kFloats)
                                    .sum(8);
inline constexpr auto kRoiBackwardRow = row<RoiAlignBackward>("roi_align")
                                            .backward()
                                            .args_of<RoiAlignBackwardArgs>()
                                            .attrs_of<RoiAlignAttrs>()
                                            .name("samples")
                                            .rank(4)
                                            .takes(kFloats)
                                            .sum(8);
inline constexpr auto kRoiPoolRow = row<RoiPool>("roi_pool")
                                        .args_of<RoiPoolArgs>()
                                        .attrs_of<RoiPoolAttrs>()
                                        .name("bins")
                                        .rank(4)
                                        .takes(kFloats)
                                        .exact();
inline constexpr auto kRoiOnGpus = table(kRoiRow, kRoiBackwardRow, kRoiPoolRow);
// A single channel is never taken as one of several that are neighbours: sums then have another order on cpus.
inline constexpr auto kTable =
    table(kNearestRow, kNearestBackwardRow.not_batch_invariant(), kResizeRow.not_batch_invariant(),
          kResizeBackwardRow.not_batch_invariant()) +
    on_cuda(kOnGpus) + on_metal(kOnGpus) + table(kSampleRow, sample_backward_row(sample_sums, nullptr)) +
    on_cuda(kSampleOnGpus) + on_metal(kSampleOnGpus) + everywhere(kFolds) + table(nms_row(nms_workspace, nullptr)) +
    on_cuda(kNmsOnGpus) + on_metal(kNmsOnGpus) + table(kRoiRow, kRoiBackwardRow.scratch(roi_sums), kRoiPoolRow) +
    on_cuda(kRoiOnGpus) + on_metal(kRoiOnGpus);
inline constexpr auto kRows = rows_of(kTable);

}  // namespace baracuda::image
