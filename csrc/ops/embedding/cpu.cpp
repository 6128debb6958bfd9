// Embedding on the CPU. Forward copies rows as bytes. Backward sorts the occurrences of ids, stable, and sums each
// weight row's gradients in the order of their positions, so that threads do not change a bit.
#include "backends/cpu/family.h"
#include "host/move_row.h"
#include "host/pick_rows.h"
#include "ops/embedding/cpu_bag.h"
#include "ops/embedding/cpu_rows.h"

namespace baracuda::embedding {
namespace {

// Dense rows short enough to be picked, by ids an even step apart.
void forward_short(const TensorView& ids, const Rows& source, const Rows& target, int64_t columns, int64_t size) {
  const MergedView view(ids);
  const IndexReader reader(ids.element, view.data, 0);
  const int64_t step = view.strides[0], n = ids.numel();
  parallel_for(n, rows_per_chunk(columns), [&](int64_t begin, int64_t end) {
    int64_t buffer[kIds];
    const RowPicker rows(columns * size, source.step() * size, target.step() * size,
                         n * columns * size >= kStreamBytes);
    const int64_t most = reader.in_place(step) ? end - begin : kIds;
    for (int64_t count; begin < end; begin += count) {
      count = std::min(most, end - begin);
      const int64_t* picked = reader.get(begin * step, step, count, buffer);
      rows.pick(source.at(0), picked, count, target.at(begin));
    }
  });
}

Status forward(const Launch& launch) {
  using Args = EmbeddingArgs;
  const TensorView &ids = launch[Args::ids], &weight = launch[Args::weight], &y = launch[Args::y];
  if (!in_range(launch, Args::ids, weight.shape[0])) return Status::IndexOutOfRange;
  const int64_t columns = weight.shape[1], size = size_of(weight.element);
  const MergedView id_view(ids);
  const Rows source(weight), target(y);
  if (columns == 0) return Status::Ok;
  if (columns * size <= kPickedBytes && source.even() && target.even() && id_view.rank == 1) {
    forward_short(ids, source, target, columns, size);
    return Status::Ok;
  }
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

template <class T>
Status backward(const Launch& launch) {
  using Args = EmbeddingBackwardArgs;
  const TensorView &dy = launch[Args::dy], &ids = launch[Args::ids], &dweight = launch[Args::dweight];
  const EmbeddingBackwardAttrs attrs = attributes<EmbeddingBackwardAttrs>(launch);
  const int64_t rows = dweight.shape[0], n = ids.numel();
  Occurrence* occurrences = static_cast<Occurrence*>(launch.workspace);
  int64_t kept = 0;
  const bool good = for_each_id(launch, Args::ids, rows, [&](int64_t position, int64_t id) {
    if (id != attrs.padding_idx) occurrences[kept++] = {id, position};
  });
  if (!good) return Status::IndexOutOfRange;
  if (!attrs.accumulate) fill_zero(dweight);
  const Occurrence* sorted = sort_by_id(occurrences, occurrences + n, kept, rows);
  const Rows source(dy), target(dweight);
  for_each_row(sorted, kept, dweight.shape[1],
               [&](const Occurrence* first, const Occurrence* last, int64_t column, int64_t count) {
                 sum_row<T>(source, target, dy.element, attrs.accumulate != 0, first, last, column, count);
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

template <>
struct CpuKernel<embedding::BagForward> {
  static Status run(const Launch& launch) { return embedding::bag_forward(launch); }
};

template <>
struct CpuKernel<embedding::BagBackward> {
  static Status run(const Launch& launch) { return embedding::bag_backward(launch); }
};

}  // namespace baracuda

BCU_CPU_FAMILY(embedding)
