// Softmax of scaled values, some of which may be masked. A row of which nothing is left is zero.
#include "baracuda/math/exp.h"
#include "core/compute.h"
#include "core/parallel.h"
#include "host/lanes.h"
#include "host/rows.h"
#include "ops/softmax/kernels.h"

namespace baracuda::softmax {
namespace {

// `t` with strides of 0 where it is broadcast to `shape`.
TensorView stretched(const TensorView& t, const TensorView& shape) {
  if (!t.present()) return t;
  TensorView s = shape;
  s.data = t.data;
  s.element = t.element;
  for (int i = 0; i < shape.rank; ++i) {
    const int from = t.rank - shape.rank + i;
    s.strides[i] = from < 0 || t.shape[from] == 1 ? 0 : t.strides[from];
  }
  return s;
}

template <class C>
struct Scaled {
  RowMap x, mask, y;
  C scale;

  // Scaled values [at, at + n) of a row, -inf where they are masked.
  void tile(int64_t r, int64_t at, int64_t n, C* to) const {
    C buffer[kRowTile<C>];
    const C* v = read(x, x.row(r), at, n, buffer);
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) to[j] = v[j] * scale;
    if (!mask.present()) return;
    const C* keep = read(mask, mask.row(r), at, n, buffer);
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) to[j] = keep[j] != C(0) ? to[j] : -std::numeric_limits<C>::infinity();
  }

  void row(int64_t r) const {
    C v[kRowTile<C>], e[kRowTile<C>];
    const int64_t length = x.length();
    const bool whole = length <= kRowTile<C>;
    C max = -std::numeric_limits<C>::infinity();
    for (int64_t at = 0; at < length; at += kRowTile<C>) {
      const int64_t n = std::min(kRowTile<C>, length - at);
      tile(r, at, n, v);
      const C top = lane_max(v, n);
      max = top > max ? top : max;
    }
    const bool nothing = mask.present() && max == -std::numeric_limits<C>::infinity() && all_masked(r);
    CompensatedSum<C> total;
    for (int64_t at = 0; at < length; at += kRowTile<C>) {
      const int64_t n = std::min(kRowTile<C>, length - at);
      if (!whole) tile(r, at, n, v);
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) e[j] = math::exp_weight(v[j] - max);
      total.add(lane_sum<C>(n, [](auto t) { return t; }, e));
    }
    const C factor = C(1) / total.value();
    for (int64_t at = 0; at < length; at += kRowTile<C>) {
      const int64_t n = std::min(kRowTile<C>, length - at);
      if (!whole) tile(r, at, n, v);
      C* out = target(y, y.row(r), at, e);
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) out[j] = nothing ? C(0) : math::exp_weight(v[j] - max) * factor;
      write(y, y.row(r), at, n, out);
    }
  }

 private:
  bool all_masked(int64_t r) const {
    C keep[kRowTile<C>];
    for (int64_t at = 0, length = x.length(); at < length; at += kRowTile<C>) {
      const int64_t n = std::min(kRowTile<C>, length - at);
      const C* kept = read(mask, mask.row(r), at, n, keep);
      for (int64_t j = 0; j < n; ++j)
        if (kept[j] != C(0)) return false;
    }
    return true;
  }
};

// dx = scale y (dy - sum(y dy)); y is 0 where values were masked.
template <class C>
void gradient(const RowMap& dy, const RowMap& y, const RowMap& dx, C scale, int64_t r) {
  C a[kRowTile<C>], b[kRowTile<C>];
  const int64_t length = y.length();
  CompensatedSum<C> total;
  for (int64_t at = 0; at < length; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, length - at);
    const C *d = read(dy, dy.row(r), at, n, a), *v = read(y, y.row(r), at, n, b);
    total.add(lane_sum<C>(n, [](auto t, auto u) { return t * u; }, d, v));
  }
  const C sum = total.value();
  for (int64_t at = 0; at < length; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, length - at);
    const C *d = read(dy, dy.row(r), at, n, a), *v = read(y, y.row(r), at, n, b);
    C* out = target(dx, dx.row(r), at, a);
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) out[j] = scale * (v[j] * (d[j] - sum));
    write(dx, dx.row(r), at, n, out);
  }
}

uint32_t axis_mask(const Launch& launch, int rank) {
  return rank == 0 ? 0 : 1u << attributes<SoftmaxAttrs>(launch).axis;
}

}  // namespace
}  // namespace baracuda::softmax

namespace baracuda {

using namespace softmax;

Status CpuKernel<ScaledForward>::run(const Launch& launch) {
  using Args = ScaledArgs;
  const TensorView& x = launch[Args::x];
  const uint32_t axes = axis_mask(launch, x.rank);
  with_float_type(launch.element, [&](auto c) {
    using C = decltype(c);
    Scaled<C> s{row_map(x, axes), row_map(stretched(launch[Args::mask], x), axes), row_map(launch[Args::y], axes),
                scalar_as<C>(launch.scalars[Args::scale])};
    if (s.x.length() == 0) return;
    parallel_for(s.x.rows(), row_grain(s.x.length()), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) s.row(r);
    });
  });
  return Status::Ok;
}

Status CpuKernel<ScaledBackward>::run(const Launch& launch) {
  using Args = ScaledBackwardArgs;
  const uint32_t axes = axis_mask(launch, launch[Args::dy].rank);
  const RowMap dy = row_map(launch[Args::dy], axes), y = row_map(launch[Args::y], axes),
               dx = row_map(launch[Args::dx], axes);
  with_float_type(launch.element, [&](auto c) {
    using C = decltype(c);
    const C scale = scalar_as<C>(launch.scalars[Args::scale]);
    parallel_for(y.rows(), row_grain(y.length()), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) gradient<C>(dy, y, dx, scale, r);
    });
  });
  return Status::Ok;
}

}  // namespace baracuda
