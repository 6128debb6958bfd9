// Rotary position embeddings on the CPU: one row of x at a time against one row of the cosine and sine tables.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "backends/cpu/family.h"
#include "backends/cpu/parallel.h"
#include "core/convert.h"
#include "ops/rope/skus.h"

namespace baracuda::rope {
namespace {

enum : int { kX, kCos, kSin, kPositions, kOut };

constexpr int64_t kGrain = 1 << 15;  // elements per parallel chunk
constexpr int64_t kPiece = 512;      // pairs that are rotated at a time when something has to be converted

template <class C>
constexpr Element kComputeElement = sizeof(C) == 8 ? Element::F64 : Element::F32;

// Rows of a table in the compute type.
template <class C>
struct TableView {
  const char* data;
  Element element;
  int64_t row, column;
  LoadFn<C> load_row;
  explicit TableView(const TensorView& t)
      : data(t.as<char>()),
        element(t.element),
        row(t.strides[0] * size_of(t.element)),
        column(t.shape[1] > 1 ? t.strides[1] : 1),
        load_row(loader<C>(t.element)) {}
  // Columns [first, first + n) of a row: where they lie if that will do, else copied.
  const C* read(int64_t at, int64_t first, int64_t n, C* copy) const {
    const char* from = data + at * row + first * column * size_of(element);
    if (element == kComputeElement<C> && column == 1) return reinterpret_cast<const C*>(from);
    load_row(from, column, copy, n);
    return copy;
  }
};

// y may be x: a pair is read before it is written.
template <class C>
void rotate_halves(const C* x1, const C* x2, const C* c, const C* s, C sign, C* y1, C* y2, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const C a = x1[i], b = x2[i], w = sign * s[i];
    y1[i] = a * c[i] - b * w;
    y2[i] = b * c[i] + a * w;
  }
}
template <class C>
void rotate_pairs(const C* x, const C* c, const C* s, C sign, C* y, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const C a = x[2 * i], b = x[2 * i + 1], w = sign * s[i];
    y[2 * i] = a * c[i] - b * w;
    y[2 * i + 1] = b * c[i] + a * w;
  }
}

template <class C>
struct Rotation {
  const TensorView &x, &y, &positions;
  TableView<C> cos, sin;
  int64_t start, d, pairs;
  bool interleaved, direct;
  C sign;

  int64_t position(int64_t b, int64_t s) const {
    if (!positions.present()) return start + s;
    const int64_t *shape = positions.shape, *strides = positions.strides;
    const int64_t at = positions.rank == 2 ? (shape[0] == 1 ? 0 : b * strides[0]) + s * strides[1] : s * strides[0];
    return positions.element == Element::I32 ? int64_t{positions.as<const int32_t>()[at]}
                                             : positions.as<const int64_t>()[at];
  }
  int64_t x_column() const { return d > 1 ? x.strides[x.rank - 1] : 1; }
  int64_t y_column() const { return d > 1 ? y.strides[y.rank - 1] : 1; }
};

// Goes through the rows of x and y in the order of x's memory.
struct RowWalk {
  const TensorView &x, &y;
  int axes[kMaxRank];  // outermost first
  int64_t index[kMaxRank] = {};
  int64_t from = 0, to = 0;

  RowWalk(const TensorView& in, const TensorView& out, int64_t row) : x(in), y(out) {
    // Insertion sort: stable, and without the memory that std::stable_sort takes.
    for (int i = 0; i < x.rank - 1; ++i) {
      int at = i;
      for (; at > 0 && std::abs(x.strides[axes[at - 1]]) < std::abs(x.strides[i]); --at) axes[at] = axes[at - 1];
      axes[at] = i;
    }
    for (int i = x.rank - 2; i >= 0; --i) {
      const int axis = axes[i];
      index[axis] = row % x.shape[axis];
      row /= x.shape[axis];
      from += index[axis] * x.strides[axis], to += index[axis] * y.strides[axis];
    }
  }
  void advance() {
    for (int i = x.rank - 2; i >= 0; --i) {
      const int axis = axes[i];
      from += x.strides[axis], to += y.strides[axis];
      if (++index[axis] < x.shape[axis]) return;
      from -= index[axis] * x.strides[axis], to -= index[axis] * y.strides[axis];
      index[axis] = 0;
    }
  }
};

// Columns of one row in the compute type, whatever the stored element and stride.
template <class C>
void rotate_converted(const Rotation<C>& r, const char* from, char* to, int64_t position) {
  alignas(64) C c[kPiece], s[kPiece], a[2 * kPiece];
  const Element element = r.x.element;
  const int64_t size = size_of(element), in = r.x_column(), out = r.y_column();
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

// Every position is looked up before the first write.
template <class C>
Status check_positions(const Rotation<C>& r, int64_t batch, int64_t seq, int64_t table_rows, Failure* failure) {
  const bool given = r.positions.present();
  const int64_t rows =
      given && r.positions.rank == 2 ? std::min(batch, r.positions.shape[0]) : std::min<int64_t>(batch, 1);
  for (int64_t b = 0; b < rows; ++b) {
    for (int64_t s = 0; s < seq; ++s) {
      const int64_t at = r.position(b, s);
      if (at >= 0 && at < table_rows) continue;
      *failure = {given ? kPositions : kCos, b * seq + s, at, table_rows};
      return Status::IndexOutOfRange;
    }
  }
  return Status::Ok;
}

template <class C>
Status rotate(const Launch& launch, C sign) {
  const TensorView &x = launch[kX], &y = launch[kOut];
  const RopeAttrs attrs = attributes<RopeAttrs>(launch);
  Rotation<C> r{x,
                y,
                launch[kPositions],
                TableView<C>(launch[kCos]),
                TableView<C>(launch[kSin]),
                0,
                x.shape[x.rank - 1],
                attrs.rotary_dim / 2,
                attrs.interleaved != 0,
                false,
                sign};
  r.start = r.positions.present() ? 0 : launch.scalars[0].as_i64();
  r.direct = x.element == kComputeElement<C> && r.x_column() == 1 && r.y_column() == 1 &&
             r.cos.element == kComputeElement<C> && r.cos.column == 1 && r.sin.element == kComputeElement<C> &&
             r.sin.column == 1;
  const int64_t seq = x.shape[x.rank - 2], rows = r.d == 0 ? 0 : x.numel() / r.d;
  if (rows == 0) return Status::Ok;
  const Status status = check_positions(r, x.rank > 2 ? x.shape[0] : 1, seq, launch[kCos].shape[0], launch.failure);
  if (status != Status::Ok) return status;
  const int64_t size = size_of(x.element);
  parallel_for(rows, std::max<int64_t>(1, kGrain / r.d), [&](int64_t begin, int64_t end) {
    RowWalk walk(x, y, begin);
    for (int64_t i = begin; i < end; ++i, walk.advance()) {
      const int64_t position = r.position(x.rank > 2 ? walk.index[0] : 0, walk.index[x.rank - 2]);
      char *source = x.as<char>() + walk.from * size, *target = y.as<char>() + walk.to * size;
      if (r.direct) {
        rotate_direct(r, reinterpret_cast<const C*>(source), reinterpret_cast<C*>(target), position);
      } else {
        rotate_converted(r, source, target, position);
      }
    }
  });
  return Status::Ok;
}

// cos and sin of position * base^(-i / pairs). Angles and functions are computed in double: a float's angle would be
// off by more than 1e-3 at position 30000.
Status make_table(const Launch& launch) {
  enum : int { kTableCos, kTableSin };
  const TensorView &cos = launch[kTableCos], &sin = launch[kTableSin];
  const double base = launch.scalars[0].as_f64();
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
    return launch.element == Element::F64 ? rope::rotate<double>(launch, kSign) : rope::rotate<float>(launch, kSign);
  }
};

template <>
struct CpuKernel<rope::Table> {
  static Status run(const Launch& launch) { return rope::make_table(launch); }
};

}  // namespace baracuda

BCU_CPU_FAMILY(rope)
