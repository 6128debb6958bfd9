// Sorting on the CPU: long lines one after another by all threads, short ones side by side.
#include "backends/cpu/family.h"
#include "core/parallel.h"
#include "host/rows.h"
#include "ops/sort/radix.h"

namespace baracuda::sort {
namespace {

// The lines along an axis of the tensor that is sorted and of both results.
struct Lines {
  RowMap x, values, indices;
  int64_t x_stride, value_stride, index_stride;

  Lines(const Launch& launch, int64_t axis) {
    const auto seen = [&](int param, int64_t& stride) {
      const TensorView& t = launch[param];
      stride = t.rank == 0 ? 1 : t.strides[axis];
      return row_map(t, t.rank == 0 ? 0 : 1u << axis);
    };
    x = seen(SortArgs::x, x_stride);
    values = seen(SortArgs::values, value_stride);
    indices = seen(SortArgs::indices, index_stride);
  }
  Line line(int64_t r) const { return {x.row(r), x_stride, x.length()}; }
  // Entries [first, first + n) of line r, sorted.
  template <class K>
  void write(const Access<K>& access, int64_t r, const Entry<K>* sorted, int64_t first, int64_t n,
             uint64_t flip) const {
    char* to = values.row(r) + first * value_stride * size_of(values.element);
    access.write(line(r), sorted + first, n, flip, to, value_stride);
    int64_t* index = reinterpret_cast<int64_t*>(indices.row(r)) + first * index_stride;
    for (int64_t i = 0; i < n; ++i) index[i * index_stride] = static_cast<int64_t>(sorted[first + i].position);
  }
};

template <class K>
void sort_lines(const Launch& launch, const Lines& lines, uint64_t flip) {
  const Access<K> access = access_of<K>(launch.element);
  const int64_t rows = lines.x.rows(), length = lines.x.length();
  Entry<K>* memory = static_cast<Entry<K>*>(launch.workspace);
  if (length < kLongLine) {
    parallel_for(rows, row_grain(4 * length), [&](int64_t begin, int64_t end) {
      Entry<K>* mine = memory + thread_index() * 2 * length;
      for (int64_t r = begin; r < end; ++r)
        lines.write(access, r, sort_short(access, lines.line(r), flip, mine, mine + length), 0, length, flip);
    });
    return;
  }
  const int64_t parts = std::clamp<int64_t>(length / kLongLine, 2, kMostParts);
  for (int64_t r = 0; r < rows; ++r) {
    LineSort<K> sort(access, lines.line(r), flip, parts, reinterpret_cast<K*>(memory + 2 * length));
    const Entry<K>* sorted = sort.run(memory, memory + length);
    parallel_for(length, kParallelGrain,
                 [&](int64_t begin, int64_t end) { lines.write(access, r, sorted, begin, end - begin, flip); });
  }
}

}  // namespace
}  // namespace baracuda::sort

namespace baracuda {

template <>
struct CpuKernel<sort::Sort> {
  static Status run(const Launch& launch) {
    const auto attrs = attributes<sort::SortAttrs>(launch);
    const sort::Lines lines(launch, attrs.axis);
    if (lines.x.rows() == 0 || lines.x.length() == 0) return Status::Ok;
    const uint64_t flip = attrs.descending ? ~uint64_t{0} : 0;
    if (sort::wide_entries(launch.element, lines.x.length()))
      sort::sort_lines<uint64_t>(launch, lines, flip);
    else
      sort::sort_lines<uint32_t>(launch, lines, flip);
    return Status::Ok;
  }
};

}  // namespace baracuda

BCU_CPU_FAMILY(sort)
