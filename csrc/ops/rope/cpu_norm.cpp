// rms_norm_rope on the CPU: a row is normalised, multiplied by weights and rotated while it is in the caches.
//   forward   v = x rstd w, y = R v
//   backward  g = R' dy, dx = rstd (g w - xhat mean(g w xhat)) with xhat = x rstd, dweight = sum over rows of g xhat
#include <cmath>

#include "host/careful.h"
#include "host/strip_sums.h"
#include "ops/rope/cpu.h"
#include "ops/rope/kernels.h"

namespace baracuda::rope {
namespace {

// What both directions read besides their rows. Absent weights are 1.
template <class C>
struct NormRope {
  TableView<C> cos, sin;
  Positions positions;
  int64_t d, pairs;
  bool interleaved;
  C weight[kMostColumns];

  template <class Args>
  NormRope(const Launch& launch, Args)
      : cos(launch[Args::cos]),
        sin(launch[Args::sin]),
        positions(launch[Args::positions], launch.scalars[Args::position]) {
    const NormRopeAttrs attrs = attributes<NormRopeAttrs>(launch);
    const TensorView &x = launch[Args::x], &w = launch[Args::weight];
    d = x.shape[x.rank - 1];
    pairs = attrs.rotary_dim / 2, interleaved = attrs.interleaved != 0;
    if (w.present()) {
      loader<C>(w.element)(w.as<char>(), column_stride(w), weight, d);
      for (int64_t i = 0; i < d; ++i) weight[i] += static_cast<C>(attrs.weight_offset);
    } else {
      std::fill(weight, weight + d, C(1));
    }
  }

  // out = the row turned by its position, or back by it; out may be v.
  void rotate(const C* v, int64_t position, C sign, C* out) const {
    C c[kMostColumns / 2], s[kMostColumns / 2];
    const C *cosine = cos.read(position, 0, pairs, c), *sine = sin.read(position, 0, pairs, s);
    if (interleaved) {
      rotate_pairs(v, cosine, sine, sign, out, pairs);
    } else {
      rotate_halves(v, v + pairs, cosine, sine, sign, out, out + pairs, pairs);
    }
    if (out != v) std::copy(v + 2 * pairs, v + d, out + 2 * pairs);
  }
};

// Rows of a tensor in the compute type.
template <class C>
struct Columns {
  int64_t stride;
  bool direct;
  LoadFn<C> load_row;
  StoreFn<C> store_row;

  explicit Columns(const TensorView& t)
      : stride(column_stride(t)),
        direct(t.element == element_of<C> && stride == 1),
        load_row(loader<C>(t.element)),
        store_row(storer<C>(t.element)) {}
  const C* read(const char* row, int64_t n, C* copy) const {
    if (direct) return reinterpret_cast<const C*>(row);
    load_row(row, stride, copy, n);
    return copy;
  }
  C* target(char* row, C* copy) const { return direct ? reinterpret_cast<C*>(row) : copy; }
  void write(char* row, int64_t n, const C* from) const {
    if (!direct) store_row(row, stride, from, n);
  }
};

template <class C>
C rstd_of(const C* v, int64_t n, C eps) {
  const C squares = lane_sum<C>(n, [](auto t) { return t * t; }, v);
  return C(1) / std::sqrt(squares / static_cast<C>(n) + eps);
}

template <class C>
Status forward(const Launch& launch) {
  using Args = NormRopeArgs;
  const TensorView &x = launch[Args::x], &y = launch[Args::y], &rstd = launch[Args::rstd];
  const NormRope<C> r(launch, Args());
  const C eps = static_cast<C>(launch.scalars[Args::eps].as_f64());
  const int64_t rows = r.d == 0 ? 0 : x.numel() / r.d;
  if (rows == 0) return Status::Ok;
  const int64_t limit = launch[Args::cos].shape[0];
  const Status status = r.positions.check(x, limit, Args::cos, Args::positions, launch.failure);
  if (status != Status::Ok) return status;
  const Columns<C> in(x), out(y);
  parallel_for(rows, std::max<int64_t>(1, kGrain / r.d), [&](int64_t begin, int64_t end) {
    C copy[kMostColumns], scaled[kMostColumns], turned[kMostColumns];
    RowWalk<3> walk(begin, x, y, rstd);
    for (int64_t i = begin; i < end; ++i, walk.advance()) {
      const C* v = in.read(walk.row(0), r.d, copy);
      C scale = rstd_of(v, r.d, eps), by = 1;
      if (squares_lost_by(scale)) {
        by = scale_of(largest_size(C(0), v, r.d));
        for (int64_t k = 0; k < r.d; ++k) scaled[k] = v[k] * by;
        v = scaled, scale = rstd_of(v, r.d, eps * by * by);
      }
#pragma GCC ivdep
      for (int64_t k = 0; k < r.d; ++k) scaled[k] = v[k] * scale * r.weight[k];
      C* to = out.target(walk.row(1), turned);
      r.rotate(scaled, r.positions.of(walk.batch(), walk.place()), C(1), to);
      out.write(walk.row(1), r.d, to);
      if (rstd.present()) *walk.template row<C>(2) = scale * by;
    }
  });
  return Status::Ok;
}

template <class C>
struct Backward {
  using Args = NormRopeBackwardArgs;
  const TensorView &dy, &x, &rstd, &dx;
  const NormRope<C> r;
  const Columns<C> from_dy, from_x, to_dx;

  explicit Backward(const Launch& launch)
      : dy(launch[Args::dy]),
        x(launch[Args::x]),
        rstd(launch[Args::rstd]),
        dx(launch[Args::dx]),
        r(launch, Args()),
        from_dy(dy),
        from_x(x),
        to_dx(dx) {}

  void rows(int64_t begin, int64_t end, Partial<C> dweight) const {
    C grad[kMostColumns], copy[kMostColumns], result[kMostColumns];
    if (begin >= end) return;
    RowWalk<4> walk(begin, x, dy, dx, rstd);
    for (int64_t i = begin; i < end; ++i, walk.advance()) {
      const C *d = from_dy.read(walk.row(1), r.d, grad), *v = from_x.read(walk.row(0), r.d, copy);
      r.rotate(d, r.positions.of(walk.batch(), walk.place()), C(-1), grad);
      const C scale = *walk.template row<const C>(3);
      // Scaled to the size of 1 before anything is multiplied by them.
      const auto term = [scale](auto g, auto t, auto w) { return g * w * (t * scale); };
      const C slope = lane_sum<C>(r.d, term, grad, v, r.weight) / static_cast<C>(r.d);
      if (dweight.present()) {
#pragma GCC ivdep
        for (int64_t k = 0; k < r.d; ++k) dweight.block[k] += grad[k] * (v[k] * scale);
        if ((i - begin) % kStripBlock == kStripBlock - 1 || i == end - 1) dweight.flush(r.d);
      }
      C* to = to_dx.target(walk.row(2), result);
#pragma GCC ivdep
      for (int64_t k = 0; k < r.d; ++k) to[k] = (grad[k] * r.weight[k] - v[k] * scale * slope) * scale;
      to_dx.write(walk.row(2), r.d, to);
    }
  }

  Status run(const Launch& launch) const {
    const TensorView& dweight = launch[Args::dweight];
    const int64_t count = r.d == 0 ? 0 : x.numel() / r.d, strips = strips_of(count), step = 2 * r.d;
    const int64_t limit = launch[Args::cos].shape[0];
    const Status status = count ? r.positions.check(x, limit, Args::cos, Args::positions, launch.failure) : Status::Ok;
    if (status != Status::Ok) return status;
    if (!dweight.present()) {
      parallel_for(count, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, r.d)),
                   [&](int64_t begin, int64_t end) { rows(begin, end, {}); });
      return Status::Ok;
    }
    C* partial = static_cast<C*>(launch.workspace);
    const int64_t per = strips ? (count + strips - 1) / strips : 0;
    parallel_for(strips, row_grain(per * r.d), [&](int64_t first, int64_t last) {
      for (int64_t s = first; s < last; ++s) {
        C* own = partial + s * step;
        std::fill(own, own + step, C(0));
        rows(std::min(count, s * per), std::min(count, (s + 1) * per), {own, own + r.d});
      }
    });
    finish_strips(row_map(dweight, 1), partial + r.d, step, strips, r.d);
    return Status::Ok;
  }
};

}  // namespace
}  // namespace baracuda::rope

namespace baracuda {

Status CpuKernel<rope::NormRotate>::run(const Launch& launch) {
  return launch.element == Element::F64 ? rope::forward<double>(launch) : rope::forward<float>(launch);
}
Status CpuKernel<rope::NormRotateBackward>::run(const Launch& launch) {
  return launch.element == Element::F64 ? rope::Backward<double>(launch).run(launch)
                                        : rope::Backward<float>(launch).run(launch);
}

}  // namespace baracuda
