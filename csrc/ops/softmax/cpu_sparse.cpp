// Sparsemax and entmax-1.5 on the CPU, a row by a thread.
#include "core/compute.h"
#include "core/parallel.h"
#include "host/lanes.h"
#include "host/rows.h"
#include "ops/softmax/kernels.h"
#include "ops/softmax/sparse.h"

namespace baracuda::softmax {
namespace {

template <bool kSquared, class C>
struct SparseRow {
  const RowMap &x, &y;

  template <class Body>
  void each_tile(int64_t r, C* in, Body&& body) const {
    for (int64_t at = 0, length = x.length(); at < length; at += kRowTile<C>) {
      const int64_t n = std::min(kRowTile<C>, length - at);
      body(read(x, x.row(r), at, n, in), at, n);
    }
  }
  Above<C> above(int64_t r, C top, C t, C* in) const {
    C e[kRowTile<C>];
    CompensatedSum<C> first, second;
    each_tile(r, in, [&](const C* v, int64_t, int64_t n) {
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) e[j] = sparse_value<false>(distance_of<kSquared>(v[j], top), t);
      first.add(lane_sum<C>(n, [](auto d) { return d; }, e));
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) e[j] = second_term<kSquared>(e[j]);
      second.add(lane_sum<C>(n, [](auto d) { return d; }, e));
    });
    return {first.value(), second.value()};
  }
  void run(int64_t r) const {
    C in[kRowTile<C>], out[kRowTile<C>];
    C top = -std::numeric_limits<C>::infinity();
    each_tile(r, in, [&](const C* v, int64_t, int64_t n) {
      const C most = lane_extreme<true, true>(v, n);
      top = most > top || most != most || top != top ? (top != top ? top : most) : top;
    });
    const bool none = !(math::fabs(top) <= std::numeric_limits<C>::max());
    C t = C(-1);
    for (int step = 0; step < kMostSteps && !none; ++step) {
      const C next = next_threshold<kSquared>(t, above(r, top, t, in));
      if (!(next > t)) break;
      t = next;
    }
    if (none) t = math::quiet_nan<C>();
    each_tile(r, in, [&](const C* v, int64_t at, int64_t n) {
      C* to = target(y, y.row(r), at, out);
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) to[j] = none ? t : sparse_value<kSquared>(distance_of<kSquared>(v[j], top), t);
      write(y, y.row(r), at, n, to);
    });
  }
};

template <bool kSquared, class C>
void sparse_gradient(const RowMap& dy, const RowMap& y, const RowMap& dx, int64_t r) {
  C a[kRowTile<C>], b[kRowTile<C>], s[kRowTile<C>];
  const int64_t length = y.length();
  CompensatedSum<C> products, slopes;
  for (int64_t at = 0; at < length; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, length - at);
    const C *d = read(dy, dy.row(r), at, n, a), *v = read(y, y.row(r), at, n, b);
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) s[j] = sparse_slope<kSquared>(v[j]);
    slopes.add(lane_sum<C>(n, [](auto t) { return t; }, s));
    products.add(lane_sum<C>(n, [](auto t, auto u) { return t * u; }, d, s));
  }
  const C mean = products.value() / slopes.value();
  for (int64_t at = 0; at < length; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, length - at);
    const C *d = read(dy, dy.row(r), at, n, a), *v = read(y, y.row(r), at, n, b);
    C* out = target(dx, dx.row(r), at, s);
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) out[j] = sparse_slope<kSquared>(v[j]) * (d[j] - mean);
    write(dx, dx.row(r), at, n, out);
  }
}

uint32_t axis_mask(const Launch& launch, int rank) {
  return rank == 0 ? 0 : 1u << attributes<SoftmaxAttrs>(launch).axis;
}

template <bool kSquared>
Status sparse_forward(const Launch& launch) {
  using Args = SoftmaxArgs;
  const uint32_t axes = axis_mask(launch, launch[Args::x].rank);
  const RowMap x = row_map(launch[Args::x], axes), y = row_map(launch[Args::y], axes);
  if (x.length() == 0) return Status::Ok;
  with_float_type(launch.element, [&](auto c) {
    const SparseRow<kSquared, decltype(c)> row{x, y};
    parallel_for(x.rows(), row_grain(8 * x.length()), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) row.run(r);
    });
  });
  return Status::Ok;
}

template <bool kSquared>
Status sparse_backward(const Launch& launch) {
  using Args = SoftmaxBackwardArgs;
  const uint32_t axes = axis_mask(launch, launch[Args::dy].rank);
  const RowMap dy = row_map(launch[Args::dy], axes), y = row_map(launch[Args::y], axes),
               dx = row_map(launch[Args::dx], axes);
  with_float_type(launch.element, [&](auto c) {
    parallel_for(y.rows(), row_grain(y.length()), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) sparse_gradient<kSquared, decltype(c)>(dy, y, dx, r);
    });
  });
  return Status::Ok;
}

}  // namespace
}  // namespace baracuda::softmax

namespace baracuda {

using namespace softmax;

Status CpuKernel<SparseForward<false>>::run(const Launch& launch) { return sparse_forward<false>(launch); }
Status CpuKernel<SparseForward<true>>::run(const Launch& launch) { return sparse_forward<true>(launch); }
Status CpuKernel<SparseBackward<false>>::run(const Launch& launch) { return sparse_backward<false>(launch); }
Status CpuKernel<SparseBackward<true>>::run(const Launch& launch) { return sparse_backward<true>(launch); }

}  // namespace baracuda
