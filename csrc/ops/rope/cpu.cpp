// Rotary position embeddings on the CPU: one row of x at a time against one row of the cosine and sine tables.
#include <algorithm>
#include <cmath>

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

template <class C, class Call>
Status rotate(const Launch& launch, C sign) {
  using Args = typename Call::Args;
  const TensorView &x = launch[Call::kFrom], &y = launch[Call::kTo], &cos = launch[Args::cos];
  const RopeAttrs attrs = attributes<RopeAttrs>(launch);
  const Positions positions(launch[Args::positions], launch.scalars[Args::position]);
  Rotation<C> r{x,
                y,
                TableView<C>(cos),
                TableView<C>(launch[Args::sin]),
                x.shape[x.rank - 1],
                attrs.rotary_dim / 2,
                attrs.interleaved != 0,
                false,
                sign};
  r.direct = x.element == kComputeElement<C> && column_stride(x) == 1 && column_stride(y) == 1 &&
             r.cos.element == kComputeElement<C> && r.cos.column == 1 && r.sin.element == kComputeElement<C> &&
             r.sin.column == 1;
  const int64_t rows = r.d == 0 ? 0 : x.numel() / r.d;
  if (rows == 0) return Status::Ok;
  const Status status = positions.check(x, cos.shape[0], Args::cos, Args::positions, launch.failure);
  if (status != Status::Ok) return status;
  parallel_for(rows, std::max<int64_t>(1, kGrain / r.d), [&](int64_t begin, int64_t end) {
    RowWalk<2> walk(begin, x, y);
    for (int64_t i = begin; i < end; ++i, walk.advance()) {
      const int64_t position = positions.of(walk.batch(), walk.place());
      if (r.direct) {
        rotate_direct(r, walk.row<const C>(0), walk.row<C>(1), position);
      } else {
        rotate_converted(r, walk.row(0), walk.row(1), position);
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
struct CpuKernel<rope::Table> {
  static Status run(const Launch& launch) { return rope::make_table(launch); }
};

}  // namespace baracuda

BCU_CPU_FAMILY(rope)
