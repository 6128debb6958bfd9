// Rows of elements moved bit for bit, whatever they are: n elements of 1, 2, 4, 8 or 16 bytes at any strides.
#pragma once
#include <cstdint>
#include <cstring>

namespace baracuda {

struct Cell16 {
  uint64_t low, high;
};

// Calls f(T()) with an unsigned type of so many bytes.
template <class F>
decltype(auto) with_cell(int64_t size, F&& f) {
  switch (size) {
    case 1:
      return f(uint8_t());
    case 2:
      return f(uint16_t());
    case 4:
      return f(uint32_t());
    case 8:
      return f(uint64_t());
    default:
      return f(Cell16());
  }
}

inline void move_row(int64_t size, char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  if (to_stride == 1 && from_stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(n * size));
    return;
  }
  with_cell(size, [&](auto cell) {
    using T = decltype(cell);
    T* d = reinterpret_cast<T*>(to);
    const T* s = reinterpret_cast<const T*>(from);
    for (int64_t i = 0; i < n; ++i) d[i * to_stride] = s[i * from_stride];
  });
}

inline void clear_row(int64_t size, char* to, int64_t stride, int64_t n) {
  if (stride == 1) {
    std::memset(to, 0, static_cast<size_t>(n * size));
    return;
  }
  with_cell(size, [&](auto cell) {
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<decltype(cell)*>(to)[i * stride] = cell;
  });
}

}  // namespace baracuda
