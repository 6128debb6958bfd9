// Softmax and log_softmax on the CPU. Rows that fit a tile are read once; longer ones are read again for each pass,
// from cache. An axis that is not the dense one is done for many columns side by side.
#include "backends/cpu/family.h"
#include "baracuda/math/math.h"
#include "core/parallel.h"
#include "host/lanes.h"
#include "host/online.h"
#include "host/row_writer.h"
#include "host/short_rows.h"
#include "ops/softmax/kernels.h"

namespace baracuda::softmax {
namespace {

// Values of a row after which the next lines of the row to come are fetched.
constexpr int64_t kFetch = 256;

template <class C>
void exp_minus(const C* x, C max, C* e, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) e[i] = math::exp_weight(x[i] - max);
}

template <bool kLog, class C>
void forward_row(const RowMap& x, int64_t r, int64_t end, const RowWriter<C>& writer, char* to) {
  C in[kRowTile<C>], e[kRowTile<C>];
  const char* from = x.row(r);
  const int64_t length = x.length();
  const bool whole = length <= kRowTile<C>;
  const C* v = nullptr;
  C max = -std::numeric_limits<C>::infinity();
  for (int64_t at = 0; at < length; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, length - at);
    v = read(x, from, at, n, in);
    const C top = lane_max(v, n);
    max = top > max ? top : max;
  }
  CompensatedSum<C> total;
  for (int64_t at = 0; at < length; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, length - at);
    if (!whole) v = read(x, from, at, n, in);
    const Ahead next(x, r + 1, end, at);
    for (int64_t i = 0; i < n; i += kFetch) {  // memory is slow and exp is: at the same time
      const int64_t count = std::min(kFetch, n - i);
      exp_minus(v + i, max, e + i, count);
      next.fetch(i, count);
    }
    total.add(lane_sum<C>(n, [](auto t) { return t; }, e));
  }
  const C scale = kLog ? math::log(total.value()) : C(1) / total.value();
  for (int64_t at = 0; at < length; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, length - at);
    if (!whole) v = read(x, from, at, n, in);
    if (!whole && !kLog) exp_minus(v, max, e, n);
    writer.put(to, at, n, [&](int64_t begin, int64_t count, C* out) {
      const C *values = v + begin, *powers = e + begin;
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) out[i] = kLog ? (values[i] - max) - scale : powers[i] * scale;
    });
  }
}

template <bool kLog, class C>
void forward_short(const RowMap& x, const RowMap& y, int64_t begin, int64_t end) {
  using L = Lanes<C>;
  const ShortRows<C> from(x), to(y, x.data == y.data);
  typename ShortRows<C>::Block in, powers, out;
  const int64_t n = x.length();
  for (int64_t r = begin; r < end; r += L::kWidth) {
    const int rows = static_cast<int>(std::min<int64_t>(L::kWidth, end - r));
    const C* v = from.read(r, rows, in);
    C* target = to.target(r, out);
    const auto [max, total] = weigh_rows(v, rows, n, powers.values);
    for (int k = 0; k < rows; ++k) {
      const C *values = v + k * n, *e = powers.values + k * n, top = max[k];
      const C scale = kLog ? math::log(C(total[k])) : C(1) / total[k];
      C* row = target + k * n;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) row[i] = kLog ? (values[i] - top) - scale : e[i] * scale;
    }
    to.write(r, rows, target);
  }
}

// Columns of a tile: of a long axis so many that a row of them is a page, but at least four tiles.
constexpr int64_t kWide = 1024, kLong = 1024;
int64_t forward_width(int64_t columns, int64_t length) {
  if (length < kLong) return columns_for(length);
  return std::clamp<int64_t>(columns / 4 / 64 * 64, 64, kWide);
}

// Rows here are positions along the axis; [first, first + n) are the columns, n <= kWide. Two passes over memory.
template <bool kLog, class C>
void forward_columns(const RowMap& x, const RowMap& y, const RowWriter<C>& writer, int64_t first, int64_t n) {
  using Columns = OnlineColumns<C, kWide, false>;
  const int64_t rows = x.rows();
  Columns columns(n);
  const RowReader<C> reader(x);
  const auto add = [&]<int kRows>(int64_t r) {
    alignas(64) C in[kRows][Columns::kPiece];
    const char* from[kRows];
    Ahead next[kRows];
    for (int k = 0; k < kRows; ++k) from[k] = x.row(r + k), next[k] = Ahead(x, r + k + kRows, rows, first);
    for (int64_t j = 0; j < n; j += Columns::kPiece) {
      const int64_t count = std::min(Columns::kPiece, n - j);
      const C* at[kRows];
      for (int k = 0; k < kRows; ++k) {
        at[k] = reader.get(from[k], first + j, count, in[k]);
        next[k].fetch(j, count);
      }
      columns.template add_piece<kRows>(at, j, count);
    }
    columns.took(kRows);
  };
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) add.template operator()<4>(r);
  for (; r < rows; ++r) add.template operator()<1>(r);
  columns.flush();
  C *max = columns.max, *sum = columns.sum;
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) {
    sum[j] = math::log(sum[j]);
    // A column of -inf, or with +inf, is NaN.
    if (!(math::fabs(max[j]) <= std::numeric_limits<C>::max())) sum[j] = math::quiet_nan<C>();
  }
  alignas(64) C in[kWide];
  for (r = 0; r < rows; ++r) {
    const char* from = x.row(r);
    writer.put(
        y.row(r), first, n,
        [&](int64_t begin, int64_t count, C* out) {
          const C *values = reader.get(from, first + begin, count, in), *tops = max + begin, *logs = sum + begin;
#pragma GCC ivdep
          for (int64_t j = 0; j < count; ++j) {
            const C z = (values[j] - tops[j]) - logs[j];
            out[j] = kLog ? z : math::exp_weight(z);
          }
        },
        Ahead(x, r + 1, rows, first));
  }
}

// softmax: dx = y (dy - sum(y dy)); log_softmax: dx = dy - exp(y) sum(dy).
template <bool kLog, class C>
C gradient(C dy, C y, C sum) {
  return kLog ? dy - math::exp(y) * sum : y * (dy - sum);
}

template <bool kLog, class C>
void backward_row(const RowMap& dy, const RowMap& y, int64_t r, int64_t end, const RowWriter<C>& writer, char* to) {
  C grad[kRowTile<C>], saved[kRowTile<C>];
  const char *from = dy.row(r), *kept = y.row(r);
  const int64_t length = dy.length();
  const bool whole = length <= kRowTile<C>;
  const C *d = nullptr, *v = nullptr;
  CompensatedSum<C> total;
  for (int64_t at = 0; at < length; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, length - at);
    d = read(dy, from, at, n, grad);
    v = read(y, kept, at, n, saved);
    total.add(kLog ? lane_sum<C>(
                         n, [](auto t) { return t; }, d)
                   : lane_sum<C>(n, [](auto t, auto u) { return t * u; }, d, v));
  }
  const C sum = total.value();
  for (int64_t at = 0; at < length; at += kRowTile<C>) {
    const int64_t n = std::min(kRowTile<C>, length - at);
    if (!whole) d = read(dy, from, at, n, grad), v = read(y, kept, at, n, saved);
    writer.put(
        to, at, n,
        [&](int64_t begin, int64_t count, C* out) {
          const C *grads = d + begin, *values = v + begin;
#pragma GCC ivdep
          for (int64_t i = 0; i < count; ++i) out[i] = gradient<kLog>(grads[i], values[i], sum);
        },
        Ahead(dy, r + 1, end, at), Ahead(y, r + 1, end, at));
  }
}

template <bool kLog, class C>
void backward_short(const RowMap& dy, const RowMap& y, const RowMap& dx, int64_t begin, int64_t end) {
  using L = Lanes<C>;
  const ShortRows<C> grads(dy), saved(y), to(dx, dx.data == dy.data || dx.data == y.data);
  typename ShortRows<C>::Block a, b, out;
  const int64_t n = dy.length();
  for (int64_t r = begin; r < end; r += L::kWidth) {
    const int rows = static_cast<int>(std::min<int64_t>(L::kWidth, end - r));
    const C *d = grads.read(r, rows, a), *v = saved.read(r, rows, b);
    C* target = to.target(r, out);
    const auto total = fold_rows_of<C>(
        rows,
        [&](int k) {
          if constexpr (kLog) return lane_sums<C>(n, [](auto t) { return t; }, d + k * n);
          return lane_sums<C>(n, [](auto t, auto u) { return t * u; }, d + k * n, v + k * n);
        },
        Add());
    for (int k = 0; k < rows; ++k) {
      const C sum = total[k];
#pragma GCC ivdep
      for (int64_t i = k * n; i < (k + 1) * n; ++i) target[i] = gradient<kLog>(d[i], v[i], sum);
    }
    to.write(r, rows, target);
  }
}

template <bool kLog, class C>
void backward_columns(const RowMap& dy, const RowMap& y, const RowMap& dx, int64_t first, int64_t n) {
  constexpr int64_t kFlush = 64;
  C grad[kColumns], saved[kColumns], low[kColumns], sum[kColumns];
  const int64_t rows = dy.rows();
  for (int64_t j = 0; j < n; ++j) low[j] = sum[j] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const C *d = read(dy, dy.row(r), first, n, grad), *v = kLog ? d : read(y, y.row(r), first, n, saved);
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) low[j] += kLog ? d[j] : d[j] * v[j];
    if (r % kFlush != kFlush - 1 && r != rows - 1) continue;
    for (int64_t j = 0; j < n; ++j) sum[j] += low[j], low[j] = 0;
  }
  for (int64_t r = 0; r < rows; ++r) {
    const C *d = read(dy, dy.row(r), first, n, grad), *v = read(y, y.row(r), first, n, saved);
    char* to = dx.row(r);
    C* out = target(dx, to, first, grad);
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) out[j] = gradient<kLog>(d[j], v[j], sum[j]);
    write(dx, to, first, n, out);
  }
}

// Calls rows(begin, end) for all rows, or columns(first, n) for tiles of them. `as_rows`: rows, however short or far
// apart their values.
template <class Rows, class Columns>
void for_rows(const RowMap& m, bool as_rows, int64_t width, Rows&& some_rows, Columns&& columns) {
  const int64_t rows = m.rows(), length = m.length();
  if (rows == 0 || length == 0) return;
  if (side_by_side(m) && !as_rows) {
    const int64_t tiles = (rows + width - 1) / width;
    parallel_for(tiles, row_grain(width * length), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) columns(t * width, std::min(width, rows - t * width));
    });
    return;
  }
  parallel_for(rows, row_grain(length), some_rows);
}

uint32_t axis_mask(const Launch& launch, int rank) {
  return rank == 0 ? 0 : 1u << attributes<SoftmaxAttrs>(launch).axis;
}

template <bool kLog, class C>
void forward(const Launch& launch) {
  using Args = SoftmaxArgs;
  const uint32_t mask = axis_mask(launch, launch[Args::x].rank);
  const RowMap x = row_map(launch[Args::x], mask), y = row_map(launch[Args::y], mask), xt = across(x), yt = across(y);
  const bool brief = is_short(x) && is_short(y);
  for_rows(
      x, brief || launch.batch_invariant, forward_width(x.rows(), x.length()),
      [&](int64_t begin, int64_t end) {
        if (brief) return forward_short<kLog, C>(x, y, begin, end);
        const RowWriter<C> writer(y, x.data == y.data);
        for (int64_t r = begin; r < end; ++r) forward_row<kLog, C>(x, r, end, writer, y.row(r));
      },
      [&](int64_t first, int64_t n) {
        forward_columns<kLog, C>(xt, yt, RowWriter<C>(yt, x.data == y.data), first, n);
      });
}

template <bool kLog, class C>
void backward(const Launch& launch) {
  using Args = SoftmaxBackwardArgs;
  const uint32_t mask = axis_mask(launch, launch[Args::dy].rank);
  const RowMap dy = row_map(launch[Args::dy], mask), y = row_map(launch[Args::y], mask),
               dx = row_map(launch[Args::dx], mask);
  const RowMap dyt = across(dy), yt = across(y), dxt = across(dx);
  const bool brief = is_short(dy) && is_short(y) && is_short(dx);
  for_rows(
      dy, brief || launch.batch_invariant, columns_for(dy.length()),
      [&](int64_t begin, int64_t end) {
        if (brief) return backward_short<kLog, C>(dy, y, dx, begin, end);
        const RowWriter<C> writer(dx, dx.data == dy.data || dx.data == y.data);
        for (int64_t r = begin; r < end; ++r) backward_row<kLog, C>(dy, y, r, end, writer, dx.row(r));
      },
      [&](int64_t first, int64_t n) { backward_columns<kLog, C>(dyt, yt, dxt, first, n); });
}

}  // namespace
}  // namespace baracuda::softmax

namespace baracuda {

template <bool kLog>
struct CpuKernel<softmax::Forward<kLog>> {
  static Status run(const Launch& launch) {
    launch.element == Element::F64 ? softmax::forward<kLog, double>(launch) : softmax::forward<kLog, float>(launch);
    return Status::Ok;
  }
};

template <bool kLog>
struct CpuKernel<softmax::Backward<kLog>> {
  static Status run(const Launch& launch) {
    launch.element == Element::F64 ? softmax::backward<kLog, double>(launch) : softmax::backward<kLog, float>(launch);
    return Status::Ok;
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(softmax)
