// Logarithms of running sums of exponentials, and their gradient, on the CPU. In doubles, and in units of exp(the
// largest value so far), so that a step is one exponential of a number that is not above 0.
#include "ops/scan/cpu.h"
#include "ops/scan/flip.h"
#include "ops/scan/kernels.h"
#include "ops/scan/math.h"

namespace baracuda::scan {
namespace {

// A step of the sum: sum = sum * kept + added.
struct Step {
  double kept, added;
};
Step step_of(double top, double x) {
  const double smaller = math::exp(top == x ? 0.0 : -math::fabs(x - top));
  return x > top ? Step{smaller, 1} : Step{1, smaller};
}

struct LogSumLine {
  double top = -math::infinity<double>(), sum = 0;

  void scan(const double* x, int64_t n, double* y) {
    double tops[kTile + 1], kept[kTile], added[kTile];
    tops[0] = top;
    for (int64_t j = 0; j < n; ++j) tops[j + 1] = larger(tops[j], x[j]);
    for (int64_t j = 0; j < n; ++j) {
      const Step s = step_of(tops[j], x[j]);
      kept[j] = s.kept, added[j] = s.added;
    }
    double total = sum;
    for (int64_t j = 0; j < n; ++j) kept[j] = total = total * kept[j] + added[j];
    for (int64_t j = 0; j < n; ++j) y[j] = tops[j + 1] + math::log(kept[j]);
    top = tops[n], sum = total;
  }
};

void log_sum_columns(const std::array<RowMap, 2>& maps, int64_t first, int64_t n) {
  const auto& [x, y] = maps;
  double given[kTile], top[kTile], sum[kTile], kept[kTile], added[kTile];
  std::fill_n(top, n, -math::infinity<double>());
  std::fill_n(sum, n, 0.0);
  for (int64_t r = 0, rows = x.rows(); r < rows; ++r) {
    const double* v = read(x, x.row(r), first, n, given);
    for (int64_t j = 0; j < n; ++j) {
      const Step s = step_of(top[j], v[j]);
      kept[j] = s.kept, added[j] = s.added;
    }
    for (int64_t j = 0; j < n; ++j) top[j] = larger(top[j], v[j]);
    for (int64_t j = 0; j < n; ++j) sum[j] = sum[j] * kept[j] + added[j];
    for (int64_t j = 0; j < n; ++j) kept[j] = top[j] + math::log(sum[j]);
    put_row(y, y.row(r), first, n, kept);
  }
}

using GradientMaps = std::array<RowMap, 4>;  // dy, x, y, dx, all of them backwards

// dx = exp(x - y) total, where total = dy + exp(y - the next y) (the next total).
void gradient_lines(const GradientMaps& maps) {
  const auto& [dy, x, y, dx] = maps;
  const int64_t length = x.length();
  parallel_for(x.rows(), row_grain(length), [&](int64_t begin, int64_t end) {
    double a[kTile], b[kTile], c[kTile], kept[kTile];
    for (int64_t r = begin; r < end; ++r) {
      double total = 0, next = 0;
      for (int64_t at = 0; at < length; at += kTile) {
        const int64_t n = std::min(kTile, length - at);
        const double *d = read(dy, dy.row(r), at, n, a), *v = read(x, x.row(r), at, n, b),
                     *w = read(y, y.row(r), at, n, c);
        kept[0] = at == 0 ? 0 : exp_of_difference(w[0], next);
        for (int64_t j = 1; j < n; ++j) kept[j] = exp_of_difference(w[j], w[j - 1]);
        next = w[n - 1];
        for (int64_t j = 0; j < n; ++j) kept[j] = total = total * kept[j] + d[j];
        for (int64_t j = 0; j < n; ++j) kept[j] *= exp_of_difference(v[j], w[j]);
        put_row(dx, dx.row(r), at, n, kept);
      }
    }
  });
}

void gradient_columns(const GradientMaps& maps, int64_t first, int64_t n) {
  const auto& [dy, x, y, dx] = maps;
  double a[kTile], b[kTile], c[kTile], total[kTile], next[kTile], found[kTile];
  std::fill_n(total, n, 0.0);
  for (int64_t r = 0, rows = x.rows(); r < rows; ++r) {
    const double *d = read(dy, dy.row(r), first, n, a), *v = read(x, x.row(r), first, n, b),
                 *w = read(y, y.row(r), first, n, c);
    if (r == 0) std::copy_n(w, n, next);
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      total[j] = total[j] * exp_of_difference(w[j], next[j]) + d[j];
      next[j] = w[j];
      found[j] = total[j] * exp_of_difference(v[j], w[j]);
    }
    put_row(dx, dx.row(r), first, n, found);
  }
}

}  // namespace

void log_sums(const Launch& launch) {
  const std::array<TensorView, 2> tensors{launch[ScanArgs::x], launch[ScanArgs::y]};
  walk<8>(
      tensors, attributes<ScanAttrs>(launch).axis,
      [](const auto& m) { run_lines<LogSumLine, double, double>(m[0], m[1]); }, log_sum_columns);
}

void log_sums_backward(const Launch& launch) {
  using Args = ResultBackwardArgs;
  const int64_t axis = attributes<ScanAttrs>(launch).axis;
  const std::array<TensorView, 4> tensors{flipped(launch[Args::dy], axis), flipped(launch[Args::x], axis),
                                          flipped(launch[Args::y], axis), flipped(launch[Args::dx], axis)};
  walk<8>(tensors, axis, gradient_lines, gradient_columns);
}

}  // namespace baracuda::scan
