// What adding up windows is asked for: attributes, arguments, and the axes that follow from them.
#pragma once
#include "core/args.h"
#include "core/attrs.h"
#include "ops/conv/planes.h"
#include "ops/pool/window.h"

namespace baracuda::image {

// Those of axes that y lacks are 0.
BCU_ATTRS(FoldAttrs, (i64, kernel0), (i64, kernel1), (i64, kernel2), (i64, stride0), (i64, stride1), (i64, stride2),
          (i64, low0), (i64, low1), (i64, low2), (i64, high0), (i64, high1), (i64, high2), (i64, dilation0),
          (i64, dilation1), (i64, dilation2))
// x [N, C taps, windows], y [N, C, places...].
BCU_ARGS(FoldArgs, (x, y), ())

struct Fold {
  pool::Axis axis[conv::kAxes];  // in: places of y, out: windows; those that y lacks, in front, have one of each

  int64_t taps() const { return axis[0].taps * axis[1].taps * axis[2].taps; }
  int64_t windows() const { return axis[0].out * axis[1].out * axis[2].out; }
};

// slots: attributes from kernel0 to dilation2. No windows where none fits.
inline Fold fold_of(const int64_t* slots, int spatial, const int64_t* places) {
  using conv::kAxes;
  Fold f;
  for (pool::Axis& a : f.axis) a = {1, 1, 1, 1, 0, 0, 1};
  for (int i = 0; i < spatial; ++i) {
    pool::Axis& a = f.axis[kAxes - spatial + i];
    a = {places[i], 0, slots[i], slots[kAxes + i], slots[2 * kAxes + i], slots[3 * kAxes + i], slots[4 * kAxes + i]};
    const int64_t rest = a.in + a.low + a.high - (a.taps - 1) * a.dilation - 1;
    a.out = rest < 0 ? 0 : rest / a.stride + 1;
  }
  return f;
}

}  // namespace baracuda::image
