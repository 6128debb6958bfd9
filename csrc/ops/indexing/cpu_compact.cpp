// Elements that are kept in order: nonzero and masked_select; and one_hot.
#include "core/compute.h"
#include "host/move_row.h"
#include "ops/indexing/cpu.h"
#include "ops/indexing/places.h"

namespace baracuda::indexing {
namespace {

// Elements [begin, end) of a tensor in runs: calls run(kept, position, n), where kept(i) says whether the i-th of n is
// not zero.
template <class Run>
void for_each_tested(const MergedView& x, int64_t begin, int64_t end, Run&& run) {
  // A float's sign does not make it differ from zero.
  const uint64_t sign = is_float(x.element) ? uint64_t{1} << (8 * size_of(x.element) - 1) : 0;
  with_cell(size_of(x.element), [&](auto cell) {
    using T = decltype(cell);
    if constexpr (sizeof(T) <= 8) {
      const T mask = static_cast<T>(~sign);
      for_each_run(x, begin, end - begin, [&](int64_t offset, int64_t stride, int64_t position, int64_t n) {
        const T* v = reinterpret_cast<const T*>(x.at(offset));
        run([=](int64_t i) { return (v[i * stride] & mask) != 0; }, begin + position, n);
      });
    }
  });
}

int64_t chunks_of(int64_t n) { return (n + kChunk - 1) / kChunk; }

// Counts what each chunk keeps; counts become the places where chunks begin. Returns how many are kept.
int64_t places_of_chunks(const MergedView& x, int64_t n, int64_t* places) {
  parallel_for(chunks_of(n), 2, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      int64_t count = 0;
      for_each_tested(x, c * kChunk, std::min(n, (c + 1) * kChunk), [&](auto kept, int64_t, int64_t many) {
        for (int64_t i = 0; i < many; ++i) count += kept(i);
      });
      places[c] = count;
    }
  });
  int64_t total = 0;
  for (int64_t c = 0; c < chunks_of(n); ++c) {
    const int64_t count = places[c];
    places[c] = total;
    total += count;
  }
  return total;
}

// Calls put(place, positions, count) for the elements that are kept and have places below `capacity`, some at a time.
// Positions are found without a branch for each element: what is kept is as good as random.
template <class Put>
void put_kept(const MergedView& x, int64_t n, const int64_t* places, int64_t capacity, Put&& put) {
  parallel_for(chunks_of(n), 2, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      int64_t place = places[c];
      if (place >= capacity) continue;
      for_each_tested(x, c * kChunk, std::min(n, (c + 1) * kChunk), [&](auto kept, int64_t position, int64_t many) {
        int64_t found[kIds];
        for (int64_t i = 0; i < many && place < capacity; i += kIds) {
          const int64_t some = std::min(kIds, many - i);
          int64_t count = 0;
          for (int64_t k = 0; k < some; ++k) found[count] = position + i + k, count += kept(i + k);
          count = std::min(count, capacity - place);
          put(place, found, count);
          place += count;
        }
      });
    }
  });
}

// Writes coordinates of positions in a tensor of a shape like x's to rows of y; the positions are used up.
void put_coordinates(const TensorView& x, const TensorView& y, int64_t place, int64_t* positions, int64_t count) {
  int64_t* const rows = y.as<int64_t>() + place * y.strides[0];
  for (int d = x.rank - 1; d >= 0; --d) {
    int64_t* const column = rows + d * y.strides[1];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t next = d == 0 ? 0 : positions[i] / x.shape[d];
      column[i * y.strides[0]] = positions[i] - next * x.shape[d];
      positions[i] = next;
    }
  }
}

// The rows from `first` on become zero.
void clear_rest(const TensorView& y, int64_t first) {
  const int64_t size = size_of(y.element), columns = y.rank > 1 ? y.shape[1] : 1,
                stride = y.rank > 1 ? y.strides[1] : 1;
  parallel_for(y.shape[0] - std::min(first, y.shape[0]), row_grain(columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      clear_row(size, y.as<char>() + (first + i) * y.strides[0] * size, stride, columns);
  });
}

void put_count(const TensorView& count, int64_t n) { *count.as<int64_t>() = n; }

}  // namespace

Status nonzero(const Launch& launch) {
  using Args = NonzeroArgs;
  const TensorView &x = launch[Args::x], &y = launch[Args::y];
  const MergedView view(x);
  int64_t* places = static_cast<int64_t*>(launch.workspace);
  const int64_t n = x.numel(), capacity = y.shape[0], total = places_of_chunks(view, n, places);
  if (capacity > 0 && x.rank > 0)
    put_kept(view, n, places, capacity,
             [&](int64_t place, int64_t* found, int64_t count) { put_coordinates(x, y, place, found, count); });
  clear_rest(y, total);
  put_count(launch[Args::count], total);
  return Status::Ok;
}

Status masked_select(const Launch& launch) {
  using Args = MaskedSelectArgs;
  const TensorView &mask = launch[Args::mask], &x = launch[Args::x], &y = launch[Args::y];
  const MergedView view(mask), from(x);
  int64_t* places = static_cast<int64_t*>(launch.workspace);
  const int64_t n = mask.numel(), capacity = y.shape[0], total = places_of_chunks(view, n, places);
  Steps steps;
  for (int d = 0; d < x.rank; ++d) steps.push(x.shape[d], x.strides[d]);
  with_cell(size_of(x.element), [&](auto cell) {
    using T = decltype(cell);
    T* to = y.as<T>();
    const T* values = x.as<const T>();
    put_kept(view, n, places, capacity, [&](int64_t place, const int64_t* found, int64_t count) {
      for (int64_t i = 0; i < count; ++i) to[(place + i) * y.strides[0]] = values[steps.offset(found[i])];
    });
  });
  clear_rest(y, total);
  put_count(launch[Args::count], total);
  return Status::Ok;
}

Status one_hot(const Launch& launch) {
  using Args = OneHotArgs;
  const TensorView &index = launch[Args::index], &y = launch[Args::y];
  const int last = y.rank - 1;
  const int64_t classes = y.shape[last], size = size_of(y.element);
  if (!in_range(launch, Args::index, classes, false)) return Status::IndexOutOfRange;
  if (y.numel() == 0) return Status::Ok;
  alignas(16) char one[16];
  const double number = 1;
  store(y.element, one, 1, &number, 1);
  const RowMap rows = row_map(y, 1u << last);
  const MergedView ids(index);
  parallel_for(index.numel(), row_grain(classes), [&](int64_t begin, int64_t end) {
    int64_t buffer[kIds];
    for (int64_t n; begin < end; begin += n) {
      n = std::min(kIds, end - begin);
      load_span(ids, begin, n, buffer);
      for (int64_t i = 0; i < n; ++i) {
        char* row = rows.row(begin + i);
        clear_row(size, row, y.strides[last], classes);
        std::memcpy(row + buffer[i] * y.strides[last] * size, one, static_cast<size_t>(size));
      }
    }
  });
  return Status::Ok;
}

}  // namespace baracuda::indexing
