// What sampling by a grid is asked for: attributes, arguments, and the workspace of its gradients.
#pragma once
#include "core/args.h"
#include "core/attrs.h"
#include "core/row.h"
#include "ops/conv/planes.h"
#include "ops/image/sample.h"
#include "simt/sort_workspace.h"

namespace baracuda::image {

using conv::kAxes;
using conv::Planes;

BCU_ATTRS(SampleAttrs, (i64, mode), (i64, padding), (i64, align_corners))
// x [N, C, places...], grid [N, results..., axes], y [N, C, results...].
BCU_ARGS(SampleArgs, (x, grid, y), ())
BCU_ARGS(SampleBackwardArgs, (dy, x, grid, dx, dgrid), ())

struct Sampling {
  Side side[kAxes];  // of axes that a shape lacks, in front, the only place is taken
  int axes = 0;

  int64_t taps() const {
    int64_t n = 1;
    for (const Side& s : side) n *= taps_of(s.filter);
    return n;
  }
  int64_t places() const { return side[0].size * side[1].size * side[2].size; }
};

// `Sized` is a tensor or what is known of it.
template <class Given, class Sized>
Sampling sampling_of(const Given& given, const Sized& image) {
  const SampleAttrs a = attributes<SampleAttrs>(given);
  Sampling s;
  s.axes = image.rank - 2;
  for (int i = 0; i < kAxes; ++i) {
    const int axis = i - (kAxes - s.axes);
    s.side[i] = {1, kNearest, kZeros, 0};
    if (axis < 0) continue;
    s.side[i] = {image.shape[2 + axis], static_cast<int32_t>(a.mode), static_cast<int32_t>(a.padding),
                 a.align_corners != 0};
  }
  return s;
}

// Numbers of a grid: its images, results along kAxes axes, and the coordinates, the last axis' first.
struct Grid {
  const char* data;
  Element element;
  int64_t outer = 0, stride[kAxes] = {}, coordinate = 0;  // strides, in elements

  explicit Grid(const TensorView& t) : data(t.as<char>()), element(t.element) {
    auto step = [&](int i) { return t.shape[i] == 1 ? 0 : t.strides[i]; };
    const int axes = t.rank - 2;
    outer = step(0), coordinate = step(t.rank - 1);
    for (int i = 0; i < axes; ++i) stride[kAxes - axes + i] = step(1 + i);
  }
  int64_t at(int64_t n, int64_t d, int64_t h, int64_t w) const {
    return n * outer + d * stride[0] + h * stride[1] + w * stride[2];
  }
};

// Sums of a gradient in twice the precision, for all of dx.
inline int64_t sample_sums(const Problem& p) {
  const ParamMeta& x = p.params[SampleBackwardArgs::x];
  int64_t n = p.element == Element::F64 ? 16 : 8;
  for (int i = 0; i < x.rank; ++i) n *= x.shape[i];
  return n;
}

// What GPUs sort: a tap of each result of every image.
struct SampleEntries {
  int64_t count = 0, columns = 0, wide = 4;  // wide: bytes of a number that is computed with

  explicit SampleEntries(const Problem& p) : wide(p.element == Element::F64 ? 8 : 4) {
    if (p.params == nullptr || p.n_params <= SampleBackwardArgs::grid) return;
    const ParamMeta &x = p.params[SampleBackwardArgs::x], &grid = p.params[SampleBackwardArgs::grid];
    count = sampling_of(p, x).taps(), columns = x.shape[1];
    for (int i = 0; i + 1 < grid.rank; ++i) count *= grid.shape[i];
  }
  int64_t sorting() const { return simt::sort_workspace(count); }
  int64_t runs() const { return simt::runs_workspace(count, columns, 2 * wide); }
};
inline int64_t simt_sample_workspace(const Problem& p) {
  const SampleEntries e(p);
  return e.sorting() + e.runs() + e.count * e.wide;
}
inline Reason sample_entries_fit(const Problem& p) {
  if (SampleEntries(p).count < (int64_t{1} << 31)) return {};
  return {"grid_shape", "fewer than 2^31 taps of all results", "a GPU counts them in 32 bits"};
}

}  // namespace baracuda::image
