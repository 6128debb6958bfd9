// Cosine similarity of two tensors along an axis, which may be broadcast to each other.
#include <cmath>

#include "backends/cpu/parallel.h"
#include "core/compute.h"
#include "ops/reduce/axes.h"
#include "ops/reduce/kernels.h"

namespace baracuda::reduce {
namespace {

template <class C>
struct Products {
  C ab, aa, bb;
};

template <class C>
Products<C> products(const RowMap& a, const RowMap& b, int64_t r) {
  C in[kRowTile<C>], other[kRowTile<C>];
  CompensatedSum<C> ab, aa, bb;
  for (int64_t at = 0, length = a.length(); at < length; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, length - at);
    const C *v = read(a, a.row(r), at, n, in), *u = read(b, b.row(r), at, n, other);
    ab.add(lane_sum<C>(n, [](auto s, auto t) { return s * t; }, v, u));
    aa.add(lane_sum<C>(n, [](auto s) { return s * s; }, v));
    bb.add(lane_sum<C>(n, [](auto s) { return s * s; }, u));
  }
  return {ab.value(), aa.value(), bb.value()};
}

// `t` with strides of 0 where it is broadcast to `shape`.
TensorView stretched(const TensorView& t, const TensorView& shape) {
  TensorView s = shape;
  s.data = t.data;
  s.element = t.element;
  for (int i = 0; i < shape.rank; ++i) {
    const int from = t.rank - shape.rank + i;
    s.strides[i] = from < 0 || t.shape[from] == 1 ? 0 : t.strides[from];
  }
  return s;
}
// The shape that both have together; the axis counts from its start.
TensorView together(const TensorView& a, const TensorView& b) {
  TensorView s = a.rank >= b.rank ? a : b;
  const TensorView& less = a.rank >= b.rank ? b : a;
  for (int i = 0; i < less.rank; ++i) {
    int64_t& size = s.shape[s.rank - less.rank + i];
    if (size == 1) size = less.shape[i];
  }
  return s;
}

// x1, x2, y
template <class C>
void similarity(const Launch& launch) {
  const uint32_t axes = 1u << attributes<CosineAttrs>(launch).axis;
  const TensorView shape = together(launch[0], launch[1]);
  const RowMap a = row_map(stretched(launch[0], shape), axes), b = row_map(stretched(launch[1], shape), axes);
  const RowMap y = row_map(launch[2], 0);
  const C eps = scalar_as<C>(launch.scalars[0]);
  parallel_for(a.rows(), row_grain(a.length()), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const Products<C> p = products<C>(a, b, r);
      const C norm_a = std::max(std::sqrt(p.aa), eps), norm_b = std::max(std::sqrt(p.bb), eps);
      put<C>(y, r, p.ab / norm_a / norm_b);
    }
  });
}

// dy, x1, x2, dx1, dx2
template <class C>
void similarity_gradient(const Launch& launch) {
  const uint32_t axes = 1u << attributes<CosineAttrs>(launch).axis;
  const RowMap a = row_map(launch[1], axes), b = row_map(launch[2], axes), dy = row_map(launch[0], 0);
  const RowMap da = row_map(launch[3], axes), db = row_map(launch[4], axes);
  const C eps = scalar_as<C>(launch.scalars[0]);
  const int64_t length = a.length();
  parallel_for(a.rows(), row_grain(length), [&](int64_t begin, int64_t end) {
    C in[kRowTile<C>], other[kRowTile<C>], to[kRowTile<C>];
    for (int64_t r = begin; r < end; ++r) {
      const Products<C> p = products<C>(a, b, r);
      const C length_a = std::sqrt(p.aa), length_b = std::sqrt(p.bb), d = get<C>(dy, r);
      const C norm_a = std::max(length_a, eps), norm_b = std::max(length_b, eps);
      const C y = p.ab / norm_a / norm_b, cross = d / norm_a / norm_b;
      // A length below eps counts as eps, which does not change with x.
      const C own_a = length_a > eps ? d * y / norm_a / norm_a : C(0);
      const C own_b = length_b > eps ? d * y / norm_b / norm_b : C(0);
      for (int64_t at = 0; at < length; at += kRowTile<C>) {
        const int64_t n = std::min(kRowTile<C>, length - at);
        const C *v = read(a, a.row(r), at, n, in), *u = read(b, b.row(r), at, n, other);
        const auto put_tile = [&](const RowMap& m, const C* x, const C* z, C own) {
          C* g = target(m, m.row(r), at, to);
#pragma GCC ivdep
          for (int64_t j = 0; j < n; ++j) g[j] = cross * z[j] - own * x[j];
          write(m, m.row(r), at, n, g);
        };
        put_tile(da, v, u, own_a);
        put_tile(db, u, v, own_b);
      }
    }
  });
}

}  // namespace
}  // namespace baracuda::reduce

namespace baracuda {

using namespace reduce;

Status CpuKernel<Cosine>::run(const Launch& launch) {
  with_float_type(launch.element, [&](auto c) { similarity<decltype(c)>(launch); });
  return Status::Ok;
}

template <>
Status CpuKernel<Backward<Cosine>>::run(const Launch& launch) {
  with_float_type(launch.element, [&](auto c) { similarity_gradient<decltype(c)>(launch); });
  return Status::Ok;
}

}  // namespace baracuda
