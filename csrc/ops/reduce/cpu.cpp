// Sums, means, maxima and minima over any set of axes. Where the kept dimensions are the denser ones in memory, columns
// are folded side by side; otherwise each output folds its own row. Reductions with few outputs are cut into strips.
#include "backends/cpu/parallel.h"
#include "ops/reduce/axes.h"
#include "ops/reduce/fold.h"
#include "ops/reduce/kernels.h"
#include "ops/reduce/walk.h"

namespace baracuda::reduce {
namespace {

// Writes the results of outputs [first, first + n), divided where it is a mean.
template <class C>
void emit(const Walk& w, int64_t first, int64_t n, const C* values, int64_t divisor) {
  C quotient[kColumnTile];
  if (divisor >= 0) {
    for (int64_t j = 0; j < n; ++j) quotient[j] = values[j] / static_cast<C>(divisor);
    values = quotient;
  }
  const int64_t inner = w.kept ? w.shape[w.kept - 1] : 1, stride = w.kept ? w.out_strides[w.kept - 1] : 1;
  while (n > 0) {
    int64_t from, to, piece = std::min(n, inner - first % inner);
    w.offsets(first, &from, &to);
    store<C>(w.out_element, w.out_at(to), stride, values, piece);
    first += piece, values += piece, n -= piece;
  }
}

// Adds positions [begin, begin + n) of the folded dimensions to `row`; `base` is where the output's values start.
template <class C, class Row>
void fold_range(const Walk& w, const char* base, int64_t begin, int64_t n, Row& row) {
  constexpr int64_t kGather = 1024, kDirectRun = 64;
  const int64_t size = size_of(w.in_element);
  const bool plain = w.in_element == kElementOf<C>;
  C buffer[kGather];
  int64_t filled = 0;
  w.folded.runs(begin, n, [&](int64_t offset, int64_t stride, int64_t count) {
    const char* at = base + offset * size;
    if (plain && stride == 1 && count >= kDirectRun) {
      row.add(reinterpret_cast<const C*>(at), count);
      return;
    }
    while (count > 0) {
      int64_t piece = std::min(count, kGather - filled);
      load<C>(w.in_element, at, stride, buffer + filled, piece);
      at += piece * stride * size, count -= piece, filled += piece;
      if (filled == kGather) {
        row.add(buffer, filled);
        filled = 0;
      }
    }
  });
  if (filled > 0) row.add(buffer, filled);
}

template <class C, class Fold>
void fold_rows(const Walk& w, C* partial, int64_t divisor) {
  const int64_t strips = strips_for(w.outputs, w.length, Lanes<C>::kBlock, w.outputs * w.length);
  const int64_t per = ((w.length + strips - 1) / strips + Lanes<C>::kBlock - 1) / Lanes<C>::kBlock * Lanes<C>::kBlock;
  auto fold_one = [&](int64_t output, int64_t begin, int64_t end) {
    typename Fold::Row row;
    int64_t from, to;
    w.offsets(output, &from, &to);
    if (end > begin) fold_range<C>(w, w.in_at(from), begin, end - begin, row);
    return row.value();
  };
  if (strips == 1) {
    parallel_for(w.outputs, row_grain(w.length), [&](int64_t begin, int64_t end) {
      C values[64];
      for (int64_t o = begin; o < end; o += 64) {
        const int64_t n = std::min<int64_t>(64, end - o);
        for (int64_t j = 0; j < n; ++j) values[j] = fold_one(o + j, 0, w.length);
        emit(w, o, n, values, divisor);
      }
    });
    return;
  }
  parallel_for(w.outputs * strips, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t from = std::min(w.length, t % strips * per);
      partial[t] = fold_one(t / strips, from, std::min(w.length, from + per));
    }
  });
  for (int64_t o = 0; o < w.outputs; ++o) {
    typename Fold::Row row;
    row.add(partial + o * strips, strips);
    C value = row.value();
    emit(w, o, 1, &value, divisor);
  }
}

// Folds rows [begin, end) of columns that start at `base` and step by `stride`.
template <class C, class Columns>
void fold_columns(const Walk& w, const char* base, int64_t stride, int64_t begin, int64_t end, Columns& columns) {
  const bool plain = w.in_element == kElementOf<C> && stride == 1;
  const int64_t size = size_of(w.in_element), n = columns.n;
  C buffer[4][kColumnTile];
  auto at = [&](int64_t r, C* to) {
    const char* p = base + w.folded.offset(r) * size;
    if (plain) return reinterpret_cast<const C*>(p);
    load<C>(w.in_element, p, stride, to, n);
    return static_cast<const C*>(to);
  };
  int64_t r = begin;
  for (; r + 4 <= end; r += 4)
    columns.add4(at(r, buffer[0]), at(r + 1, buffer[1]), at(r + 2, buffer[2]), at(r + 3, buffer[3]));
  for (; r < end; ++r) columns.add(at(r, buffer[0]));
}

template <class C, class Fold>
void fold_side_by_side(const Walk& w, C* partial, int64_t divisor) {
  const int64_t width = w.shape[w.kept - 1], stride = w.in_strides[w.kept - 1];
  const int64_t tiles = (width + kColumnTile - 1) / kColumnTile, tasks = w.outputs / width * tiles;
  const int64_t strips = strips_for(tasks, w.length, 64, w.outputs * w.length);
  const int64_t per = (w.length + strips - 1) / strips;
  const int64_t grain = strips > 1 ? 1 : row_grain(std::min(width, kColumnTile) * w.length);
  parallel_for(tasks * strips, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t task = t / strips, strip = t % strips, column = task % tiles * kColumnTile;
      const int64_t output = task / tiles * width + column, first = std::min(w.length, strip * per);
      typename Fold::Columns columns(std::min(kColumnTile, width - column));
      int64_t from, to;
      w.offsets(output, &from, &to);
      fold_columns<C>(w, w.in_at(from), stride, first, std::min(w.length, first + per), columns);
      const C* values = columns.finish();
      if (strips == 1)
        emit(w, output, columns.n, values, divisor);
      else
        std::copy(values, values + columns.n, partial + strip * w.outputs + output);
    }
  });
  if (strips == 1) return;
  parallel_for(w.outputs, kColumnTile, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; o += kColumnTile) {
      typename Fold::Columns columns(std::min(kColumnTile, end - o));
      for (int64_t s = 0; s < strips; ++s) columns.add(partial + s * w.outputs + o);
      emit(w, o, columns.n, columns.finish(), divisor);
    }
  });
}

template <class C, class Fold>
void fold(const Walk& w, void* workspace, int64_t divisor = -1) {
  if (w.outputs == 0) return;
  const int last = w.kept - 1;
  const bool denser =
      last >= 0 && w.folded.rank > 0 && std::abs(w.in_strides[last]) < std::abs(w.folded.strides[w.folded.rank - 1]);
  C* partial = static_cast<C*>(workspace);
  if (last >= 0 && w.shape[last] >= 8 && (denser || w.length <= 16))
    fold_side_by_side<C, Fold>(w, partial, divisor);
  else
    fold_rows<C, Fold>(w, partial, divisor);
}

// Calls f with a value of the type that `element` is folded in.
template <class F>
void by_compute_type(Element element, F&& f) {
  if (element == Element::F64)
    f(double{});
  else if (is_float(element))
    f(float{});
  else if (kSigned.has(element))
    f(int64_t{});
  else
    f(uint64_t{});
}

void sum(const TensorView& x, const TensorView& y, uint32_t axes, void* workspace) {
  const Walk w = make_walk(x, y, axes);
  by_compute_type(x.element, [&](auto c) { fold<decltype(c), SumFold<decltype(c)>>(w, workspace); });
}

template <bool kMax>
Status fold_extreme(const Launch& launch) {
  const Walk w = make_walk(launch[0], launch[1], static_cast<uint32_t>(attributes<ReduceAttrs>(launch).axes));
  if (w.length == 0 && w.outputs > 0) return Status::InvalidProblem;
  by_compute_type(launch[0].element,
                  [&](auto c) { fold<decltype(c), ExtremeFold<kMax, decltype(c)>>(w, launch.workspace); });
  return Status::Ok;
}

}  // namespace
}  // namespace baracuda::reduce

namespace baracuda {

template <>
struct CpuKernel<reduce::Sum> {
  static Status run(const Launch& launch) {
    reduce::sum(launch[0], launch[1], static_cast<uint32_t>(attributes<reduce::ReduceAttrs>(launch).axes),
                launch.workspace);
    return Status::Ok;
  }
};

template <>
struct CpuKernel<reduce::Mean> {
  static Status run(const Launch& launch) {
    using namespace reduce;
    const Walk w = make_walk(launch[0], launch[1], static_cast<uint32_t>(attributes<ReduceAttrs>(launch).axes));
    if (launch.element == Element::F64)
      fold<double, SumFold<double>>(w, launch.workspace, w.length);
    else
      fold<float, SumFold<float>>(w, launch.workspace, w.length);
    return Status::Ok;
  }
};

template <bool kMax>
struct CpuKernel<reduce::Extremum<kMax>> {
  static Status run(const Launch& launch) { return reduce::fold_extreme<kMax>(launch); }
};

template <>
struct CpuKernel<reduce::SumTo> {
  static Status run(const Launch& launch) {
    uint32_t axes;
    TensorView y = reduce::aligned(launch[1], launch[0], &axes);
    reduce::sum(launch[0], y, axes, launch.workspace);
    return Status::Ok;
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(reduce)
