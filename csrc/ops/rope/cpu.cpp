// Rotary position embeddings on the CPU: one row of x at a time against one row of the cosine and sine tables.
#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/rope/cpu.h"
#include "ops/rope/kernels.h"

namespace baracuda::rope {
namespace {

constexpr int64_t kPiece = 512;  // pairs that are rotated at a time when something has to be converted

template <class C>
struct Rotation {
  const TensorView &x, &y;
  TableView<C> cos, sin;
  int64_t d, pairs;
  bool interleaved, direct;
  C sign;
};

// Columns of one row in the compute type, whatever the stored element and stride.
template <class C>
void rotate_converted(const Rotation<C>& r, const char* from, char* to, int64_t position) {
  alignas(64) C c[kPiece], s[kPiece], a[2 * kPiece];
  const Element element = r.x.element;
  const int64_t size = size_of(element), in = column_stride(r.x), out = column_stride(r.y);
  const LoadFn<C> load_piece = loader<C>(element);
  const StoreFn<C> store_piece = storer<C>(element);
  for (int64_t i = 0; i < r.pairs; i += kPiece) {
    const int64_t n = std::min(kPiece, r.pairs - i);
    const C *cos = r.cos.read(position, i, n, c), *sin = r.sin.read(position, i, n, s);
    if (r.interleaved) {
      load_piece(from + 2 * i * in * size, in, a, 2 * n);
      rotate_pairs(a, cos, sin, r.sign, a, n);
      store_piece(to + 2 * i * out * size, out, a, 2 * n);
    } else {
      const int64_t second = r.pairs + i;
      load_piece(from + i * in * size, in, a, n);
      load_piece(from + second * in * size, in, a + n, n);
      rotate_halves(a, a + n, cos, sin, r.sign, a, a + n, n);
      store_piece(to + i * out * size, out, a, n);
      store_piece(to + second * out * size, out, a + n, n);
    }
  }
  for (int64_t i = 2 * r.pairs; i < r.d; i += kPiece) {
    const int64_t n = std::min(kPiece, r.d - i);
    load_piece(from + i * in * size, in, a, n);
    store_piece(to + i * out * size, out, a, n);
  }
}

template <class C>
void rotate_direct(const Rotation<C>& r, const C* from, C* to, int64_t position) {
  const C *cos = r.cos.read(position, 0, r.pairs, nullptr), *sin = r.sin.read(position, 0, r.pairs, nullptr);
  if (r.interleaved) {
    rotate_pairs(from, cos, sin, r.sign, to, r.pairs);
  } else {
    rotate_halves(from, from + r.pairs, cos, sin, r.sign, to, to + r.pairs, r.pairs);
  }
  if (to != from) std::copy(from + 2 * r.pairs, from + r.d, to + 2 * r.pairs);
}

// Rows of x turned into those of y; of `pairs` 0, copied.
template <class C>
Rotation<C> rotation(const TensorView& x, const TensorView& y, const TensorView& cos, const TensorView& sin,
                     const RopeAttrs& attrs, int64_t pairs, C sign) {
  Rotation<C> r{x,     y,   TableView<C>(cos), TableView<C>(sin), x.shape[x.rank - 1], pairs, attrs.interleaved != 0,
                false, sign};
  r.direct = x.element == element_of<C> && column_stride(x) == 1 && column_stride(y) == 1 &&
             r.cos.element == element_of<C> && r.cos.column == 1 && r.sin.element == element_of<C> && r.sin.column == 1;
  return r;
}

template <class C>
void rotate_row(const Rotation<C>& r, const char* from, char* to, int64_t position) {
  if (r.direct) {
    rotate_direct(r, reinterpret_cast<const C*>(from), reinterpret_cast<C*>(to), position);
  } else {
    rotate_converted(r, from, to, position);
  }
}

template <class C, class Call>
Status rotate(const Launch& launch, C sign) {
  using Args = typename Call::Args;
  const TensorView &x = launch[Call::kFrom], &y = launch[Call::kTo], &cos = launch[Args::cos];
  const RopeAttrs attrs = attributes<RopeAttrs>(launch);
  const Positions positions(launch[Args::positions], launch.scalars[Args::position]);
  const Rotation<C> r = rotation<C>(x, y, cos, launch[Args::sin], attrs, attrs.rotary_dim / 2, sign);
  const int64_t rows = r.d == 0 ? 0 : x.numel() / r.d;
  if (rows == 0) return Status::Ok;
  const Status status = positions.check(x, cos.shape[0], Args::cos, Args::positions, launch.failure);
  if (status != Status::Ok) return status;
  parallel_for(rows, std::max<int64_t>(1, kGrain / r.d), [&](int64_t begin, int64_t end) {
    RowWalk<2> walk(begin, x, y);
    for (int64_t i = begin; i < end; ++i, walk.advance())
      rotate_row(r, walk.row(0), walk.row(1), positions.of(walk.batch(), walk.place()));
  });
  return Status::Ok;
}

inline char* row_of(const TensorView& t, int64_t b, int64_t h, int64_t s) {
  return t.as<char>() + (b * t.strides[0] + h * t.strides[1] + s * t.strides[2]) * size_of(t.element);
}

// A head of a sequence is one thread's: of two tokens with the same position the later one stays in the cache.
template <class C>
Status rotate_append(const Launch& launch) {
  using Args = RopeAppendArgs;
  const TensorView &q = launch[Args::q], &k = launch[Args::k], &v = launch[Args::v], &cos = launch[Args::cos];
  const TensorView &sin = launch[Args::sin], &k_cache = launch[Args::k_cache], &v_cache = launch[Args::v_cache];
  const RopeAttrs attrs = attributes<RopeAttrs>(launch);
  const Positions positions(launch[Args::positions], launch.scalars[Args::position]);
  const int64_t n = q.shape[2], heads = q.shape[1], pairs = attrs.rotary_dim / 2, all = heads + 2 * k.shape[1];
  if (q.shape[0] * n * all == 0) return Status::Ok;
  for (const auto& [rows, param] :
       {std::pair(cos.shape[0], int{Args::cos}), std::pair(k_cache.shape[2], int{Args::k_cache})}) {
    const Status status = positions.check(q, rows, param, Args::positions, launch.failure);
    if (status != Status::Ok) return status;
  }
  const Rotation<C> parts[] = {rotation<C>(q, q, cos, sin, attrs, pairs, 1),
                               rotation<C>(k, k_cache, cos, sin, attrs, pairs, 1),
                               rotation<C>(v, v_cache, cos, sin, attrs, 0, 1)};
  const int64_t size = n * std::max<int64_t>({1, q.shape[3], v.shape[3]});
  parallel_for(q.shape[0] * all, std::max<int64_t>(1, kGrain / size), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / all, at = i % all, kind = at < heads ? 0 : at < heads + k.shape[1] ? 1 : 2;
      const int64_t head = kind == 0 ? at : (at - heads) % k.shape[1];
      const Rotation<C>& r = parts[kind];
      for (int64_t s = 0; s < n; ++s) {
        const int64_t position = positions.of(b, s);
        rotate_row(r, row_of(r.x, b, head, s), row_of(r.y, b, head, kind == 0 ? s : position), position);
      }
    }
  });
  return Status::Ok;
}

// cos and sin of position * base^(-i / pairs). Angles and functions are computed in double: a float's angle would be
// off by more than 1e-3 at position 30000.
Status make_table(const Launch& launch) {
  using Args = RopeTableArgs;
  const TensorView &cos = launch[Args::cos], &sin = launch[Args::sin];
  const double base = launch.scalars[Args::base].as_f64();
  const int64_t rows = cos.shape[0], pairs = cos.shape[1], size = size_of(cos.element);
  const StoreFn<double> store_one = storer<double>(cos.element);
  const auto put = [&](const TensorView& t, int64_t p, int64_t i, double value) {
    store_one(t.as<char>() + (p * t.strides[0] + i * t.strides[1]) * size, 1, &value, 1);
  };
  parallel_for(pairs, std::max<int64_t>(1, 1024 / std::max<int64_t>(rows, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double frequency = std::pow(base, -static_cast<double>(i) / static_cast<double>(pairs));
      for (int64_t p = 0; p < rows; ++p) {
        const double angle = static_cast<double>(p) * frequency;
        put(cos, p, i, std::cos(angle));
        put(sin, p, i, std::sin(angle));
      }
    }
  });
  return Status::Ok;
}

}  // namespace
}  // namespace baracuda::rope

namespace baracuda {

template <int kSign>
struct CpuKernel<rope::Rotate<kSign>> {
  static Status run(const Launch& launch) {
    using Call = rope::RotateCall<kSign>;
    return launch.element == Element::F64 ? rope::rotate<double, Call>(launch, kSign)
                                          : rope::rotate<float, Call>(launch, kSign);
  }
};

template <>
struct CpuKernel<rope::RotateAppend> {
  static Status run(const Launch& launch) {
    return launch.element == Element::F64 ? rope::rotate_append<double>(launch) : rope::rotate_append<float>(launch);
  }
};

template <>
struct CpuKernel<rope::Table> {
  static Status run(const Launch& launch) { return rope::make_table(launch); }
};

}  // namespace baracuda

BCU_CPU_FAMILY(rope)
