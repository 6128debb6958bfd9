// Embedding on the CPU. Forward copies rows as bytes. Backward sorts the occurrences of ids, stable, and sums each
// weight row's gradients in the order of their positions, so that threads do not change a bit.
#include <algorithm>
#include <cstring>

#include "backends/cpu/block_sum.h"
#include "backends/cpu/family.h"
#include "backends/cpu/move_row.h"
#include "backends/cpu/parallel.h"
#include "core/runs.h"
#include "ops/embedding/skus.h"

namespace baracuda::embedding {
namespace {

constexpr int64_t kWork = 32768;                     // elements that make a chunk worth handing out
constexpr int64_t kBlock = BlockSum<float>::kBlock;  // columns summed together
constexpr int64_t kWidth = 2048;  // columns of a row that one thread sums; shorter stretches defeat the prefetcher
constexpr int64_t kIds = 256;     // ids read together

// Hands f(position, id) every id in order; false, with the failure noted, at the first one outside [0, rows).
template <class F>
bool for_each_id(const Launch& launch, int param, int64_t rows, F&& f) {
  const TensorView& ids = launch[param];
  const MergedView view(ids);
  int64_t buffer[kIds];
  const int64_t n = ids.numel();
  for (int64_t begin = 0; begin < n; begin += kIds) {
    const int64_t count = n - begin < kIds ? n - begin : kIds;
    load_span(view, begin, count, buffer);
    for (int64_t i = 0; i < count; ++i) {
      if (static_cast<uint64_t>(buffer[i]) >= static_cast<uint64_t>(rows)) {
        if (launch.failure) *launch.failure = {param, begin + i, buffer[i], rows};
        return false;
      }
      f(begin + i, buffer[i]);
    }
  }
  return true;
}

// The rows of a tensor whose last dimension is a row: where row i begins, in logical order.
class Rows {
 public:
  explicit Rows(const TensorView& t) : stride(t.strides[t.rank - 1]), outer_(leading(t)) {}
  char* at(int64_t row) const {
    int64_t offset = 0;
    if (outer_.rank == 1) {
      offset = row * outer_.strides[0];
    } else {
      for_each_run(outer_, row, 1, [&](int64_t o, int64_t, int64_t, int64_t) { offset = o; });
    }
    return outer_.at(offset);
  }
  const int64_t stride;  // from one column to the next

 private:
  static MergedView leading(TensorView t) {
    --t.rank;
    return MergedView(t);
  }
  MergedView outer_;
};

int64_t rows_per_chunk(int64_t columns) { return columns > 0 && columns < kWork ? kWork / columns : 1; }

Status forward(const Launch& launch) {
  const TensorView &ids = launch[0], &weight = launch[1], &y = launch[2];
  if (!for_each_id(launch, 0, weight.shape[0], [](int64_t, int64_t) {})) return Status::IndexOutOfRange;
  const int64_t columns = weight.shape[1], size = size_of(weight.element);
  const MergedView id_view(ids);
  const Rows source(weight), target(y);
  if (columns == 0) return Status::Ok;
  parallel_for(ids.numel(), rows_per_chunk(columns), [&](int64_t begin, int64_t end) {
    int64_t buffer[kIds];
    for (int64_t n; begin < end; begin += n) {
      n = end - begin < kIds ? end - begin : kIds;
      load_span(id_view, begin, n, buffer);
      for (int64_t i = 0; i < n; ++i) {
        move_row(size, target.at(begin + i), target.stride, source.at(buffer[i]), source.stride, columns);
      }
    }
  });
  return Status::Ok;
}

// Stable radix sort by id, 11 bits at a time; the result is in the array returned.
Occurrence* sort_by_id(Occurrence* from, Occurrence* to, int64_t n, int64_t rows) {
  constexpr int kBits = 11;
  constexpr int64_t kDigits = 1 << kBits;
  for (int shift = 0; shift < 63 && ((rows - 1) >> shift) > 0; shift += kBits) {
    int64_t place[kDigits] = {};
    for (int64_t i = 0; i < n; ++i) ++place[(from[i].id >> shift) & (kDigits - 1)];
    int64_t sum = 0;
    for (int64_t& p : place) {
      const int64_t count = p;
      p = sum;
      sum += count;
    }
    for (int64_t i = 0; i < n; ++i) to[place[(from[i].id >> shift) & (kDigits - 1)]++] = from[i];
    Occurrence* other = from;
    from = to, to = other;
  }
  return from;
}

// Adds row x[0..n) of `element` to the sums, through a buffer where it is not contiguous in the compute type already.
template <class T>
void add_row(BlockSum<T>& sums, Element element, const char* x, int64_t stride, int64_t n, T* buffer) {
  if (stride == 1 && size_of(element) == static_cast<int64_t>(sizeof(T))) {
    sums.add(reinterpret_cast<const T*>(x), n);
    return;
  }
  load<T>(element, x, stride, buffer, n);
  sums.add(buffer, n);
}

// A row whose id occurs once: x itself, or out + x in the compute type, which rounds no more than the sums do.
template <class T>
void single_row(Element element, bool accumulate, char* out, int64_t out_stride, const char* x, int64_t x_stride,
                int64_t n) {
  if (!accumulate) return move_row(size_of(element), out, out_stride, x, x_stride, n);
  if (out_stride == 1 && x_stride == 1 && size_of(element) == static_cast<int64_t>(sizeof(T))) {
    T* o = reinterpret_cast<T*>(out);
    const T* in = reinterpret_cast<const T*>(x);
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) o[j] += in[j];
    return;
  }
  alignas(64) T sum[kBlock];
  alignas(64) T term[kBlock];
  load<T>(element, out, out_stride, sum, n);
  load<T>(element, x, x_stride, term, n);
  for (int64_t j = 0; j < n; ++j) sum[j] += term[j];
  store<T>(element, out, out_stride, sum, n);
}

// One weight row, columns [column, column + n) of it, from its occurrences [first, last) of the sorted list.
template <class T>
void sum_row(const Rows& source, const Rows& target, Element element, bool accumulate, const Occurrence* first,
             const Occurrence* last, int64_t column, int64_t n) {
  const int64_t size = size_of(element);
  char* out = target.at(first->id) + column * target.stride * size;
  auto term = [&](const Occurrence* o) { return source.at(o->position) + column * source.stride * size; };
  if (last - first == 1) return single_row<T>(element, accumulate, out, target.stride, term(first), source.stride, n);
  BlockSum<T> sums;
  alignas(64) T buffer[kBlock];
  sums.start(n);
  if (accumulate) add_row(sums, element, out, target.stride, n, buffer);
  for (const Occurrence* o = first; o < last; ++o) add_row(sums, element, term(o), source.stride, n, buffer);
  store<double>(element, out, target.stride, sums.result(), n);
}

// Weight rows whose first occurrence lies in [begin, end) of the sorted list, columns [column, column_end).
template <class T>
void sum_rows(const TensorView& dy, const TensorView& dweight, bool accumulate, const Occurrence* sorted, int64_t total,
              int64_t begin, int64_t end, int64_t column, int64_t column_end) {
  const Rows source(dy), target(dweight);
  int64_t i = begin;
  while (i > 0 && i < end && sorted[i].id == sorted[i - 1].id) ++i;
  while (i < end) {
    int64_t next = i + 1;
    while (next < total && sorted[next].id == sorted[i].id) ++next;
    for (int64_t c = column; c < column_end; c += kBlock) {
      const int64_t n = column_end - c < kBlock ? column_end - c : kBlock;
      sum_row<T>(source, target, dy.element, accumulate, sorted + i, sorted + next, c, n);
    }
    i = next;
  }
}

void fill_zero(const TensorView& t) {
  const MergedView view(t);
  const int64_t size = size_of(t.element);
  parallel_for(t.numel(), 4 * kWork, [&](int64_t begin, int64_t end) {
    for_each_run(view, begin, end - begin, [&](int64_t offset, int64_t stride, int64_t, int64_t n) {
      if (stride == 1) {
        std::memset(view.at(offset), 0, static_cast<size_t>(n * size));
      } else {
        for (int64_t k = 0; k < n; ++k) std::memset(view.at(offset + k * stride), 0, static_cast<size_t>(size));
      }
    });
  });
}

template <class T>
Status backward(const Launch& launch) {
  const TensorView &dy = launch[0], &ids = launch[1], &dweight = launch[2];
  const EmbeddingBackwardAttrs attrs = attributes<EmbeddingBackwardAttrs>(launch);
  const int64_t rows = dweight.shape[0], columns = dweight.shape[1], n = ids.numel();
  Occurrence* occurrences = static_cast<Occurrence*>(launch.workspace);
  int64_t kept = 0;
  const bool good = for_each_id(launch, 1, rows, [&](int64_t position, int64_t id) {
    if (id != attrs.padding_idx) occurrences[kept++] = {id, position};
  });
  if (!good) return Status::IndexOutOfRange;
  if (!attrs.accumulate) fill_zero(dweight);
  if (columns == 0 || kept == 0) return Status::Ok;
  const Occurrence* sorted = sort_by_id(occurrences, occurrences + n, kept, rows);
  const int64_t stripes = (columns + kWidth - 1) / kWidth;
  const int64_t per_part = rows_per_chunk(columns < kWidth ? columns : kWidth),
                parts = (kept + per_part - 1) / per_part;
  parallel_for(parts * stripes, 1, [&](int64_t first, int64_t last) {
    for (int64_t k = first; k < last; ++k) {
      const int64_t begin = k / stripes * per_part, column = k % stripes * kWidth;
      sum_rows<T>(dy, dweight, attrs.accumulate != 0, sorted, kept, begin, std::min(begin + per_part, kept), column,
                  std::min(column + kWidth, columns));
    }
  });
  return Status::Ok;
}

}  // namespace
}  // namespace baracuda::embedding

namespace baracuda {

template <>
struct CpuKernel<embedding::Forward> {
  static Status run(const Launch& launch) { return embedding::forward(launch); }
};

template <>
struct CpuKernel<embedding::Backward> {
  static Status run(const Launch& launch) {
    return launch.element == Element::F64 ? embedding::backward<double>(launch) : embedding::backward<float>(launch);
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(embedding)
