// Merging partial results on the CPU. Blocks of rows: their weights are made side by side, then rows are weighed.
#include "ops/attention/cpu.h"
#include "ops/attention/merge.h"
#include "ops/attention/merge_call.h"

namespace baracuda::attention {
namespace {

constexpr int64_t kMergeRows = 64, kMergeColumns = 1024;  // per block; columns that pass through a buffer at once

// Element offsets of consecutive rows in tensors whose leading dimensions are those of `lse`.
struct RowWalk {
  const TensorView& lse;
  int64_t at[kMaxRank] = {};

  RowWalk(const TensorView& shape, int64_t row) : lse(shape) {
    for (int i = lse.rank - 1; i >= 0; --i) at[i] = row % lse.shape[i], row /= lse.shape[i];
  }
  int64_t offset(const TensorView& t) const {
    int64_t sum = 0;
    for (int i = 0; i < lse.rank; ++i) sum += at[i] * t.strides[i];
    return sum;
  }
  void next() {
    for (int i = lse.rank - 1; i >= 0 && ++at[i] == lse.shape[i]; --i) at[i] = 0;
  }
};

char* row_of(const TensorView& t, const RowWalk& walk) { return t.as<char>() + walk.offset(t) * size_of(t.element); }

template <class C>
struct MergeBlock {
  C la[kMergeRows], lb[kMergeRows], wa[kMergeRows], wb[kMergeRows], lse[kMergeRows];
  C a[kMergeColumns], b[kMergeColumns];

  void weigh(int64_t rows) {
#pragma GCC ivdep
    for (int64_t r = 0; r < rows; ++r) {
      const MergeWeights<C> w = merge_weights(la[r], lb[r]);
      wa[r] = w.a, wb[r] = w.b;
    }
#pragma GCC ivdep
    for (int64_t r = 0; r < rows; ++r) lse[r] = MergedLse::f(la[r], lb[r]).v[0];
  }
};

// to = a wa + b wb, where a part over no keys is not looked at.
template <class C>
void add_row(const C* a, const C* b, C wa, C wb, bool use_a, bool use_b, C* to, int64_t n) {
  if (use_a && use_b) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = a[i] * wa + b[i] * wb;
  } else if (use_a || use_b) {
    const C *from = use_a ? a : b, weight = use_a ? wa : wb;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = from[i] * weight;
  } else {
    std::fill(to, to + n, C(0));
  }
}

// Sums of dout (a - b) of a row, in lanes whose number does not depend on anything.
template <class C>
struct CrossSum {
  static constexpr int64_t kWide = 16;
  C lanes[kWide] = {};

  // Columns of a row, in stretches of whole kWide but for the last.
  void add(const C* dout, const C* a, const C* b, int64_t n) {
    int64_t i = 0;
    for (; i + kWide <= n; i += kWide)
      for (int64_t j = 0; j < kWide; ++j) lanes[j] += dout[i + j] * (a[i + j] - b[i + j]);
    for (int64_t j = 0; i + j < n; ++j) lanes[j] += dout[i + j] * (a[i + j] - b[i + j]);
  }
  C total() {
    for (int64_t half = kWide / 2; half > 0; half /= 2)
      for (int64_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
    return lanes[0];
  }
};

template <class C>
void merge_gradients(const Launch& launch, int64_t begin, int64_t end) {
  using Args = MergeBackwardArgs;
  const TensorView& dout = launch[Args::dout];
  const int last = dout.rank - 1;
  const int64_t columns = dout.shape[last], size = size_of(dout.element);
  const LoadFn<C> load_row = loader<C>(dout.element);
  const StoreFn<C> store_row = storer<C>(dout.element);
  C dy[kMergeColumns], a[kMergeColumns], b[kMergeColumns];
  RowWalk walk(launch[Args::dlse], begin);
  const auto number = [&](int arg) { return reinterpret_cast<C*>(row_of(launch[arg], walk)); };
  for (int64_t r = begin; r < end; ++r, walk.next()) {
    const MergeSlopes<C> w = merge_slopes(*number(Args::lse_a), *number(Args::lse_b));
    CrossSum<C> sum;
    for (int64_t c = 0; c < columns; c += kMergeColumns) {
      const int64_t n = std::min(kMergeColumns, columns - c);
      const auto load_part = [&](int arg, C* to) {
        const int64_t step = launch[arg].strides[last];
        load_row(row_of(launch[arg], walk) + c * step * size, step, to, n);
      };
      // dy times a weight; nothing for a part over no keys.
      const auto store_part = [&](int arg, bool use, C weight) {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) a[i] = use ? dy[i] * weight : C(0);
        const int64_t step = launch[arg].strides[last];
        store_row(row_of(launch[arg], walk) + c * step * size, step, a, n);
      };
      load_part(Args::dout, dy);
      if (w.use_a && w.use_b) {
        load_part(Args::out_a, a), load_part(Args::out_b, b);
        sum.add(dy, a, b, n);
      }
      store_part(Args::dout_a, w.use_a, w.a), store_part(Args::dout_b, w.use_b, w.b);
    }
    const C dlse = *number(Args::dlse), cross = w.use_a && w.use_b ? w.cross * sum.total() : C(0);
    *number(Args::dlse_a) = w.use_a ? dlse * w.a + cross : C(0);
    *number(Args::dlse_b) = w.use_b ? dlse * w.b - cross : C(0);
  }
}

template <class C>
void merge_rows(const Launch& launch, int64_t begin, int64_t end) {
  using Args = MergeArgs;
  const TensorView &a = launch[Args::out_a], &b = launch[Args::out_b], &out = launch[Args::out];
  const int last = out.rank - 1;
  const int64_t columns = out.shape[last], size = size_of(out.element);
  const int64_t sa = a.strides[last], sb = b.strides[last], so = out.strides[last];
  const bool direct = out.element == element_of<C> && (columns <= 1 || (sa == 1 && sb == 1 && so == 1));
  const LoadFn<C> load_row = loader<C>(out.element);
  const StoreFn<C> store_row = storer<C>(out.element);
  MergeBlock<C> m;
  RowWalk reading(launch[Args::lse], begin), walk(launch[Args::lse], begin);
  for (int64_t first = begin; first < end; first += kMergeRows) {
    const int64_t rows = std::min(kMergeRows, end - first);
    for (int64_t r = 0; r < rows; ++r, reading.next()) {
      m.la[r] = *reinterpret_cast<const C*>(row_of(launch[Args::lse_a], reading));
      m.lb[r] = *reinterpret_cast<const C*>(row_of(launch[Args::lse_b], reading));
    }
    m.weigh(rows);
    for (int64_t r = 0; r < rows; ++r, walk.next()) {
      const bool use_a = m.la[r] != -C(INFINITY), use_b = m.lb[r] != -C(INFINITY);
      const char *from_a = row_of(a, walk), *from_b = row_of(b, walk);
      char* to = row_of(out, walk);
      *reinterpret_cast<C*>(row_of(launch[Args::lse], walk)) = m.lse[r];
      if (direct) {
        add_row(reinterpret_cast<const C*>(from_a), reinterpret_cast<const C*>(from_b), m.wa[r], m.wb[r], use_a, use_b,
                reinterpret_cast<C*>(to), columns);
        continue;
      }
      for (int64_t c = 0; c < columns; c += kMergeColumns) {
        const int64_t n = std::min(kMergeColumns, columns - c);
        load_row(from_a + c * sa * size, sa, m.a, n);
        load_row(from_b + c * sb * size, sb, m.b, n);
        add_row(m.a, m.b, m.wa[r], m.wb[r], use_a, use_b, m.a, n);
        store_row(to + c * so * size, so, m.a, n);
      }
    }
  }
}

}  // namespace

void merge_backward(const Launch& launch) {
  const TensorView &dout = launch[MergeBackwardArgs::dout], &dlse = launch[MergeBackwardArgs::dlse];
  const int64_t rows = space_of(dlse).numel();
  parallel_for(rows, grain_for(8 * (dout.shape[dout.rank - 1] + 16)), [&](int64_t begin, int64_t end) {
    launch.element == Element::F64 ? merge_gradients<double>(launch, begin, end)
                                   : merge_gradients<float>(launch, begin, end);
  });
}

void merge(const Launch& launch) {
  const TensorView &out = launch[MergeArgs::out], &lse = launch[MergeArgs::lse];
  const int64_t rows = space_of(lse).numel();
  parallel_for(rows, grain_for(4 * (out.shape[out.rank - 1] + 16)), [&](int64_t begin, int64_t end) {
    launch.element == Element::F64 ? merge_rows<double>(launch, begin, end) : merge_rows<float>(launch, begin, end);
  });
}

}  // namespace baracuda::attention
