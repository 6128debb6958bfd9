// Running sums and products along an axis. Floats are accumulated in f64 (as torch does), sums of f64 with their
// rounding errors beside them; where the axis is not the dense one, columns go side by side, with the same bits.
#include "ops/scan/cpu.h"
#include "backends/cpu/family.h"
#include "host/row_writer.h"
#include "ops/scan/flip.h"
#include "ops/scan/fours.h"
#include "ops/scan/kernels.h"

namespace baracuda::scan {
namespace {

// A running value with what rounding took from it; the latter only where C is the widest type there is. Integers wrap.
template <bool kProduct, bool kExact, class C>
struct Total {
  C value = kProduct ? 1 : 0, error = 0;

  C next(C x) { return next(value, error, x); }
  // Not inlined: the compiler keeps the error in memory there, and a value takes 12 cycles instead of 4.
  __attribute__((noinline)) void scan(const C* x, int64_t n, C* y) {
    C v = value, e = error;  // y might be where this is
    for (int64_t j = 0; j < n; ++j) y[j] = next(v, e, x[j]);
    value = v, error = e;
  }

 private:
  static C next(C& value, C& error, C x) {
    if constexpr (std::is_integral_v<C>)
      return value = static_cast<C>(join<kProduct>(static_cast<uint64_t>(value), static_cast<uint64_t>(x)));
    if constexpr (kProduct || !kExact) return value = join<kProduct>(value, x);
    const C s = value + x, back = s - value;
    error += (value - (s - back)) + (x - back);
    value = s;
    return error == error ? s + error : s;
  }
};

// Rows here are positions along the axis; [first, first + n) are the columns, n <= kTile.
template <bool kProduct, bool kExact, class C>
void run_columns(const RowMap& x, const RowMap& y, int64_t first, int64_t n) {
  C value[kTile], error[kTile], tile[kTile];
  std::fill_n(value, n, C(kProduct ? 1 : 0));
  std::fill_n(error, n, C(0));
  for (int64_t r = 0, rows = x.rows(); r < rows; ++r) {
    const C* v = read(x, x.row(r), first, n, tile);
    char* to = y.row(r);
    C* out = target(y, to, first, tile);
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      Total<kProduct, kExact, C> total{value[j], error[j]};
      out[j] = total.next(v[j]);
      value[j] = total.value, error[j] = total.error;
    }
    write(y, to, first, n, out);
  }
}

// The same for f32 and halves, kRows rows from r on.
template <int kRows, class Columns>
void scan_rows(const RowMap& x, const RowMap& y, const RowReader<float>& reader, const RowWriter<float>& writer,
               Columns& columns, int64_t r, int64_t first, int64_t n) {
  float buffers[kRows][kTile];
  const float* from[kRows];
  char* to[kRows];
  for (int k = 0; k < kRows; ++k) to[k] = y.row(r + k);
  const auto piece = [&](int64_t begin, int64_t count, float* const* out) {
    for (int k = 0; k < kRows; ++k) from[k] = reader.get(x.row(r + k), first + begin, count, buffers[k]);
    columns.template scan<kRows>(begin, count, from, out);
  };
  const auto ahead = [&](int k) { return Ahead(x, r + kRows + k, x.rows(), first); };
  writer.put_rows<kRows>(to, first, n, piece, ahead(0), ahead(1), ahead(2), ahead(3));
}
template <bool kProduct, bool kHalves>
void run_float_columns(const RowMap& x, const RowMap& y, int64_t first, int64_t n) {
  FourColumns<kProduct, kHalves, kTile> columns(n);
  const RowReader<float> reader(x);
  const RowWriter<float> writer(y, x.data == y.data);
  const int64_t rows = x.rows();
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) scan_rows<4>(x, y, reader, writer, columns, r, first, n);
  if (rows - r == 3) scan_rows<3>(x, y, reader, writer, columns, r, first, n);
  if (rows - r == 2) scan_rows<2>(x, y, reader, writer, columns, r, first, n);
  if (rows - r == 1) scan_rows<1>(x, y, reader, writer, columns, r, first, n);
}

template <bool kProduct, bool kExact, class C>
void run_whole(const TensorView& x, const TensorView& y, int64_t axis) {
  walk<8>(
      std::array{x, y}, axis, [](const auto& m) { run_lines<Total<kProduct, kExact, C>, C, C>(m[0], m[1]); },
      [](const auto& m, int64_t first, int64_t n) { run_columns<kProduct, kExact, C>(m[0], m[1], first, n); });
}
template <bool kProduct, bool kHalves>
void run_floats(const TensorView& x, const TensorView& y, int64_t axis) {
  walk<8>(
      std::array{x, y}, axis, [](const auto& m) { run_lines<FourLine<kProduct, kHalves>, float, float>(m[0], m[1]); },
      [](const auto& m, int64_t first, int64_t n) { run_float_columns<kProduct, kHalves>(m[0], m[1], first, n); });
}

template <bool kProduct>
void run_any(const TensorView& x, const TensorView& y, int64_t axis) {
  if (x.element == Element::F64) return run_whole<kProduct, !kProduct, double>(x, y, axis);
  if (!is_float(x.element)) return run_whole<kProduct, false, int64_t>(x, y, axis);
  y.element == Element::F32 ? run_floats<kProduct, false>(x, y, axis) : run_floats<kProduct, true>(x, y, axis);
}

// The gradient of a running product without dividing by zero. Before the first zero of x, at z, it is
// sum(dy_j y_j, i <= j < z) / x_i; at z sum(dy_j prod(x_m, m <= j, m != z)) up to the second zero; behind it 0.
struct ProductGradient {
  const RowMap &dy, &x, &y, &dx;
  double a[kTile], b[kTile], out[kTile];

  void row(int64_t r) {
    const int64_t length = x.length();
    const int64_t z = zero_from(r, 0), second = zero_from(r, z + 1);
    Total<false, true, double> sum;
    for (int64_t at = z / kTile * kTile; at >= 0; at -= kTile) before(r, at, std::min(kTile, z - at), sum);
    double others = 1;
    if (z > 0 && z < length) read_one(y, r, z - 1, &others);
    for (int64_t at = z; at < length; at += kTile)
      std::fill_n(out, kTile, 0.0), put(r, at, std::min(kTile, length - at));
    if (z >= length) return;
    Total<false, true, double> total;
    for (int64_t at = z; at < second; at += kTile) {
      const int64_t n = std::min(kTile, second - at);
      const double *d = read(dy, dy.row(r), at, n, a), *v = read(x, x.row(r), at, n, b);
      for (int64_t j = 0; j < n; ++j) {
        if (at + j > z) others *= v[j];
        total.next(d[j] * others);
      }
    }
    out[0] = total.next(0);
    put(r, z, 1);
  }

 private:
  int64_t zero_from(int64_t r, int64_t from) {
    const int64_t length = x.length();
    for (int64_t at = from; at < length; at += kTile) {
      const int64_t n = std::min(kTile, length - at);
      const double* v = read(x, x.row(r), at, n, b);
      for (int64_t j = 0; j < n; ++j)
        if (v[j] == 0) return at + j;
    }
    return length;
  }
  // Positions [at, at + n); `sum` is that of the later ones.
  void before(int64_t r, int64_t at, int64_t n, Total<false, true, double>& sum) {
    if (n == 0) return;
    const double *d = read(dy, dy.row(r), at, n, a), *v = read(x, x.row(r), at, n, b);
    const double* w = read(y, y.row(r), at, n, out);
    for (int64_t j = n - 1; j >= 0; --j) out[j] = sum.next(d[j] * w[j]) / v[j];
    put(r, at, n);
  }
  static void read_one(const RowMap& m, int64_t r, int64_t at, double* to) { *to = *read(m, m.row(r), at, 1, to); }
  void put(int64_t r, int64_t at, int64_t n) {
    if (dx.direct<double>())
      std::copy_n(out, n, reinterpret_cast<double*>(dx.row(r)) + at);
    else
      write(dx, dx.row(r), at, n, out);
  }
};

}  // namespace
}  // namespace baracuda::scan

namespace baracuda {

using namespace scan;

template <bool kProduct>
struct CpuKernel<Running<kProduct>> {
  static Status run(const Launch& launch) {
    run_any<kProduct>(launch[ScanArgs::x], launch[ScanArgs::y], attributes<ScanAttrs>(launch).axis);
    return Status::Ok;
  }
};

template <>
struct CpuKernel<Backward<Running<false>>> {
  static Status run(const Launch& launch) {
    using Args = SumBackwardArgs;
    const int64_t axis = attributes<ScanAttrs>(launch).axis;
    run_any<false>(flipped(launch[Args::dy], axis), flipped(launch[Args::dx], axis), axis);
    return Status::Ok;
  }
};

template <>
struct CpuKernel<Backward<Running<true>>> {
  static Status run(const Launch& launch) {
    using Args = ResultBackwardArgs;
    const uint32_t mask = launch[Args::dy].rank == 0 ? 0 : 1u << attributes<ScanAttrs>(launch).axis;
    const RowMap dy = row_map(launch[Args::dy], mask), x = row_map(launch[Args::x], mask);
    const RowMap y = row_map(launch[Args::y], mask), dx = row_map(launch[Args::dx], mask);
    if (x.length() == 0) return Status::Ok;
    parallel_for(x.rows(), row_grain(x.length()), [&](int64_t begin, int64_t end) {
      ProductGradient gradient{dy, x, y, dx, {}, {}, {}};
      for (int64_t r = begin; r < end; ++r) gradient.row(r);
    });
    return Status::Ok;
  }
};

template <bool kMax>
struct CpuKernel<RunningExtreme<kMax>> {
  static Status run(const Launch& launch) { return extremes(launch, kMax), Status::Ok; }
};
template <>
struct CpuKernel<LogSumExp> {
  static Status run(const Launch& launch) { return log_sums(launch), Status::Ok; }
};
template <>
struct CpuKernel<Backward<LogSumExp>> {
  static Status run(const Launch& launch) { return log_sums_backward(launch), Status::Ok; }
};

}  // namespace baracuda

BCU_CPU_FAMILY(scan)
