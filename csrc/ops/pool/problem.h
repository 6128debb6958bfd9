// What pooling is asked for: attributes, arguments, and the axes that follow from them.
#pragma once
#include <cstddef>

#include "core/args.h"
#include "core/attrs.h"
#include "core/row.h"
#include "ops/conv/planes.h"
#include "ops/pool/window.h"

namespace baracuda::pool {

using conv::kAxes;
using conv::Planes;

BCU_ATTRS(MaxAttrs, (i64, kernel0), (i64, kernel1), (i64, kernel2), (i64, stride0), (i64, stride1), (i64, stride2),
          (i64, low0), (i64, low1), (i64, low2), (i64, high0), (i64, high1), (i64, high2), (i64, dilation0),
          (i64, dilation1), (i64, dilation2), (i64, ceil_mode))
// divisor: what sums are divided by, or 0 for the number of places.
BCU_ATTRS(MeanAttrs, (i64, kernel0), (i64, kernel1), (i64, kernel2), (i64, stride0), (i64, stride1), (i64, stride2),
          (i64, low0), (i64, low1), (i64, low2), (i64, high0), (i64, high1), (i64, high2), (i64, ceil_mode),
          (i64, count_include_pad), (i64, divisor))
BCU_ARGS(MaxArgs, (x, y, indices), ())
BCU_ARGS(MaxBackwardArgs, (dy, indices, dx), ())
BCU_ARGS(MeanArgs, (x, y), ())
BCU_ARGS(MeanBackwardArgs, (dy, dx), ())

// Windows of a size, or parts of the whole.
enum class Windows { Sized, Parts };

struct Pool {
  Axis axis[kAxes];  // those that a shape lacks, in front, have size 1
  int64_t divisor = 0;
  bool padded = false;  // whether padding counts as places

  int64_t plane() const { return axis[0].in * axis[1].in * axis[2].in; }
  int64_t places(const Window& w) const { return padded ? w.size : w.count; }
};

// `sizes` are the attributes from kernel0 to high2, `dilation` those from dilation0 on; without sizes the whole is cut
// into parts.
inline Pool pool_of(const TensorView& image, const TensorView& result, const int64_t* sizes, const int64_t* dilation) {
  Pool p;
  for (Axis& a : p.axis) a = {1, 1, 1, 1, 0, 0, 1};
  const int spatial = image.rank - 2;
  for (int i = 0; i < spatial; ++i) {
    Axis& a = p.axis[kAxes - spatial + i];
    a.in = image.shape[2 + i], a.out = result.shape[2 + i], a.taps = 0;
    if (!sizes) continue;
    a.taps = sizes[i], a.stride = sizes[kAxes + i], a.low = sizes[2 * kAxes + i], a.high = sizes[3 * kAxes + i];
    if (dilation) a.dilation = dilation[i];
  }
  return p;
}
// The least number that an integer element holds; unsigned ones have 0.
template <class C>
C least_of(Element e) {
  return kSigned.has(e) ? static_cast<C>(int64_t(-1) * (int64_t{1} << (8 * size_of(e) - 2)) * 2) : C(0);
}

inline constexpr int kDilation = 4 * kAxes;
static_assert(offsetof(MaxAttrs, dilation0) == kDilation * 8 && offsetof(MeanAttrs, ceil_mode) == kDilation * 8);

template <Windows kWindows>
Pool max_pool_of(const Launch& launch, const TensorView& image, const TensorView& result) {
  const bool sized = kWindows == Windows::Sized;
  return pool_of(image, result, sized ? launch.attrs : nullptr, sized ? launch.attrs + kDilation : nullptr);
}
template <Windows kWindows>
Pool mean_pool_of(const Launch& launch, const TensorView& image, const TensorView& result) {
  if constexpr (kWindows == Windows::Parts) return pool_of(image, result, nullptr, nullptr);
  Pool p = pool_of(image, result, launch.attrs, nullptr);
  const MeanAttrs a = attributes<MeanAttrs>(launch);
  p.divisor = a.divisor, p.padded = a.count_include_pad != 0;
  return p;
}

}  // namespace baracuda::pool
