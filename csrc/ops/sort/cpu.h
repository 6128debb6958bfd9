// How lines are walked: long ones one after another by all threads, short ones side by side.
#pragma once
#include "core/parallel.h"
#include "host/rows.h"
#include "ops/sort/radix.h"

namespace baracuda::sort {

// The lines along an axis of the tensor that is read and of both results, which have so many places of it.
struct Lines {
  RowMap x, values, indices;
  int64_t x_stride, value_stride = 0, index_stride = 0;

  // `kept`: whether the results have the axis.
  Lines(const Launch& launch, int64_t axis, bool kept) {
    const auto seen = [&](int param, bool has, int64_t& stride) {
      const TensorView& t = launch[param];
      if (t.rank == 0 || !has) return row_map(t, 0);
      stride = t.strides[axis];
      return row_map(t, 1u << axis);
    };
    x_stride = 1;
    x = seen(SortArgs::x, true, x_stride);
    values = seen(SortArgs::values, kept, value_stride);
    indices = seen(SortArgs::indices, kept, index_stride);
  }
  Line line(int64_t r) const { return {x.row(r), x_stride, x.length()}; }
  // Entries [first, first + n) of those of line r.
  template <class K>
  void write(const Access<K>& access, int64_t r, const Entry<K>* found, int64_t first, int64_t n, uint64_t flip) const {
    char* to = values.row(r) + first * value_stride * size_of(values.element);
    access.write(line(r), found + first, n, flip, to, value_stride);
    int64_t* index = reinterpret_cast<int64_t*>(indices.row(r)) + first * index_stride;
    for (int64_t i = 0; i < n; ++i) index[i * index_stride] = static_cast<int64_t>(found[first + i].position);
  }
};

// Calls body(row, parts, counts, a, b) for each line, with room for its entries in a and b; `parts` are as many as a
// long line is cut into, with kDigits counts each, and 1 for a short one, whose counts are the body's own.
template <class K, class Body>
void each_line(const Launch& launch, const Lines& lines, Body&& body) {
  const int64_t rows = lines.x.rows(), length = lines.x.length();
  Entry<K>* memory = static_cast<Entry<K>*>(launch.workspace);
  if (length < kLongLine) {
    parallel_for(rows, row_grain(4 * length), [&](int64_t begin, int64_t end) {
      Entry<K>* mine = memory + thread_index() * 2 * length;
      for (int64_t r = begin; r < end; ++r) body(r, int64_t{1}, static_cast<K*>(nullptr), mine, mine + length);
    });
    return;
  }
  const int64_t parts = std::clamp<int64_t>(length / kLongLine, 2, kMostParts);
  for (int64_t r = 0; r < rows; ++r) body(r, parts, reinterpret_cast<K*>(memory + 2 * length), memory, memory + length);
}

// Calls f with the type of keys and positions.
template <class F>
void with_keys(const Launch& launch, const Lines& lines, F&& f) {
  if (lines.x.rows() == 0 || lines.x.length() == 0) return;
  wide_entries(launch.element, lines.x.length()) ? f(uint64_t{}) : f(uint32_t{});
}

// Sorts line r and writes its first n entries.
template <class K>
void sort_line(const Lines& lines, const Access<K>& access, int64_t r, int64_t n, uint64_t flip, int64_t parts,
               K* counts, Entry<K>* a, Entry<K>* b) {
  if (parts == 1) return lines.write(access, r, sort_short(access, lines.line(r), flip, a, b), 0, n, flip);
  const Entry<K>* sorted = LineSort<K>(access, lines.line(r), flip, parts, counts).run(a, b);
  parallel_for(n, kParallelGrain,
               [&](int64_t begin, int64_t end) { lines.write(access, r, sorted, begin, end - begin, flip); });
}

}  // namespace baracuda::sort
