// What the means of regions are asked for: attributes, arguments, and the workspace of their gradient.
#pragma once
#include "core/args.h"
#include "core/attrs.h"
#include "core/row.h"
#include "ops/image/roi.h"

namespace baracuda::image {

BCU_ATTRS(RoiAlignAttrs, (f64, spatial_scale), (i64, sampling_ratio), (i64, aligned))
// x [N, C, H, W], rois [K, 5] (image, x1, y1, x2, y2), y [K, C, bins, bins].
BCU_ARGS(RoiAlignArgs, (x, rois, y), ())
BCU_ARGS(RoiAlignBackwardArgs, (dy, rois, dx), ())

// indices: places of y in x, i64, [K, C, bins, bins]; -1 in a bin without places.
BCU_ATTRS(RoiPoolAttrs, (f64, spatial_scale))
BCU_ARGS(RoiPoolArgs, (x, rois, y, indices), ())

struct Regions {
  RegionSide side[2];
  double scale;
};
inline Regions regions_of(const Launch& launch, const TensorView& image, const TensorView& result) {
  const RoiAlignAttrs a = attributes<RoiAlignAttrs>(launch);
  Regions r;
  for (int i = 0; i < 2; ++i) r.side[i] = {image.shape[2 + i], result.shape[2 + i], a.sampling_ratio, a.aligned != 0};
  r.scale = a.spatial_scale;
  return r;
}

// Of the maxima of regions' bins.
inline Regions pooled_regions(const Launch& launch) {
  const TensorView &x = launch[RoiPoolArgs::x], &y = launch[RoiPoolArgs::y];
  Regions r;
  for (int i = 0; i < 2; ++i) r.side[i] = {x.shape[2 + i], y.shape[2 + i], 0, 0};
  r.scale = attributes<RoiPoolAttrs>(launch).spatial_scale;
  return r;
}

// Sums of the gradient in twice the precision.
inline int64_t roi_sums(const Problem& p) {
  const ParamMeta& dx = p.params[RoiAlignBackwardArgs::dx];
  int64_t n = p.element == Element::F64 ? 16 : 8;
  for (int i = 0; i < dx.rank; ++i) n *= dx.shape[i];
  return n;
}

}  // namespace baracuda::image
