// Cosine similarity of two tensors along an axis, which may be broadcast to each other.
#include <cmath>

#include "core/compute.h"
#include "core/parallel.h"
#include "host/careful.h"
#include "ops/reduce/axes.h"
#include "ops/reduce/kernels.h"

namespace baracuda::reduce {
namespace {

// Of the rows times powers of two.
template <class C>
struct Products {
  C ab = 0, aa = 0, bb = 0, scale_a = 1, scale_b = 1;

  // Whether sums left the range of C.
  bool lost(int64_t n) const {
    const C length = static_cast<C>(n);
    return n > 0 && (squares_lost(aa / length) || squares_lost(bb / length) || !std::isfinite(ab));
  }
};

template <bool kScaled, class C>
void add_products(const RowMap& a, const RowMap& b, int64_t r, Products<C>& p) {
  C in[kRowTile<C>], other[kRowTile<C>];
  CompensatedSum<C> ab, aa, bb;
  const auto of = [](auto v, C scale) {
    if constexpr (kScaled)
      return v * scale;
    else
      return v;
  };
  const auto first = [of, scale = p.scale_a](auto v) { return of(v, scale); };
  const auto second = [of, scale = p.scale_b](auto v) { return of(v, scale); };
  for (int64_t at = 0, length = a.length(); at < length; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, length - at);
    const C *v = read(a, a.row(r), at, n, in), *u = read(b, b.row(r), at, n, other);
    ab.add(lane_sum<C>(n, [&](auto s, auto t) { return first(s) * second(t); }, v, u));
    aa.add(lane_sum<C>(n, [&](auto s) { return first(s) * first(s); }, v));
    bb.add(lane_sum<C>(n, [&](auto s) { return second(s) * second(s); }, u));
  }
  p.ab = ab.value(), p.aa = aa.value(), p.bb = bb.value();
}

template <class C>
C scale_of_row(const RowMap& m, int64_t r) {
  C in[kRowTile<C>], most = 0;
  for (int64_t at = 0, length = m.length(); at < length; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, length - at);
    most = largest_size(most, read(m, m.row(r), at, n, in), n);
  }
  return scale_of(most);
}

template <class C>
Products<C> products(const RowMap& a, const RowMap& b, int64_t r) {
  Products<C> p;
  add_products<false>(a, b, r, p);
  if (!p.lost(a.length())) return p;
  p.scale_a = scale_of_row<C>(a, r), p.scale_b = scale_of_row<C>(b, r);
  add_products<true>(a, b, r, p);
  return p;
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

template <class C>
void similarity(const Launch& launch) {
  using Args = CosineArgs;
  const uint32_t axes = 1u << attributes<CosineAttrs>(launch).axis;
  const TensorView &x1 = launch[Args::x1], &x2 = launch[Args::x2], shape = together(x1, x2);
  const RowMap a = row_map(stretched(x1, shape), axes), b = row_map(stretched(x2, shape), axes);
  const RowMap y = row_map(launch[Args::y], 0);
  const C eps = scalar_as<C>(launch.scalars[Args::eps]);
  parallel_for(a.rows(), row_grain(a.length()), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const Products<C> p = products<C>(a, b, r);
      const C norm_a = std::max(std::sqrt(p.aa), eps * p.scale_a), norm_b = std::max(std::sqrt(p.bb), eps * p.scale_b);
      put<C>(y, r, p.ab / norm_a / norm_b);
    }
  });
}

// What the gradients of a row are made of.
template <class C>
struct Slopes {
  C d, y, norm_a, norm_b;  // norms of the scaled rows
  bool own_a, own_b;       // a length below eps counts as eps, which does not change with x
  C scale_a, scale_b;

  Slopes(const Products<C>& p, C dy, C eps) : d(dy), scale_a(p.scale_a), scale_b(p.scale_b) {
    const C length_a = std::sqrt(p.aa), length_b = std::sqrt(p.bb), least_a = eps * scale_a, least_b = eps * scale_b;
    norm_a = std::max(length_a, least_a), norm_b = std::max(length_b, least_b);
    own_a = length_a > least_a, own_b = length_b > least_b;
    y = p.ab / norm_a / norm_b;
  }
  // Whether factors of whole rows could leave the range of C.
  bool extreme() const {
    constexpr C kLeast = sizeof(C) == 4 ? C(0x1p-90) : C(0x1p-900);
    const C most = std::max(norm_a, norm_b), least = std::min(norm_a, norm_b), size = std::fabs(d);
    return scale_a != C(1) || scale_b != C(1) ||
           (d != C(0) && !(size / most / most >= kLeast && size / least / least <= C(1) / kLeast));
  }
};

// dx of `n` values x beside z, whose row has norm `norm_z`: step by step, by numbers that stay near 1.
template <class C>
void put_careful(const C* x, C norm, C scale, bool own, const C* z, C norm_z, C scale_z, C d, C y, C* dx, int64_t n) {
  C by = d / norm * scale, rest = 1;
  if (squares_lost(std::fabs(by))) by = d / norm, rest = scale;
  const C share = own ? y : C(0);
  for (int64_t j = 0; j < n; ++j) dx[j] = (z[j] * scale_z / norm_z - share * (x[j] * scale / norm)) * by * rest;
}

template <class C>
void similarity_gradient(const Launch& launch) {
  using Args = CosineBackwardArgs;
  const uint32_t axes = 1u << attributes<CosineAttrs>(launch).axis;
  const RowMap a = row_map(launch[Args::x1], axes), b = row_map(launch[Args::x2], axes);
  const RowMap dy = row_map(launch[Args::dy], 0);
  const RowMap da = row_map(launch[Args::dx1], axes), db = row_map(launch[Args::dx2], axes);
  const C eps = scalar_as<C>(launch.scalars[Args::eps]);
  const int64_t length = a.length();
  parallel_for(a.rows(), row_grain(length), [&](int64_t begin, int64_t end) {
    C in[kRowTile<C>], other[kRowTile<C>], to[2][kRowTile<C>];
    for (int64_t r = begin; r < end; ++r) {
      const Slopes<C> s(products<C>(a, b, r), get<C>(dy, r), eps);
      const bool extreme = s.extreme();
      const C cross = s.d / s.norm_a / s.norm_b;
      const C own_a = s.own_a ? s.d * s.y / s.norm_a / s.norm_a : C(0);
      const C own_b = s.own_b ? s.d * s.y / s.norm_b / s.norm_b : C(0);
      for (int64_t at = 0; at < length; at += kRowTile<C>) {
        const int64_t n = std::min(kRowTile<C>, length - at);
        const C *v = read(a, a.row(r), at, n, in), *u = read(b, b.row(r), at, n, other);
        C *ga = target(da, da.row(r), at, to[0]), *gb = target(db, db.row(r), at, to[1]);
        if (extreme) {
          put_careful(v, s.norm_a, s.scale_a, s.own_a, u, s.norm_b, s.scale_b, s.d, s.y, ga, n);
          put_careful(u, s.norm_b, s.scale_b, s.own_b, v, s.norm_a, s.scale_a, s.d, s.y, gb, n);
        } else {
#pragma GCC ivdep
          for (int64_t j = 0; j < n; ++j) ga[j] = cross * u[j] - own_a * v[j];
#pragma GCC ivdep
          for (int64_t j = 0; j < n; ++j) gb[j] = cross * v[j] - own_b * u[j];
        }
        write(da, da.row(r), at, n, ga);
        write(db, db.row(r), at, n, gb);
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
