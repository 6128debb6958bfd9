// Reading launches and finishing tiles: see gemm.h.
#include "ops/matmul/gemm.h"

#include <algorithm>

namespace baracuda::matmul {
namespace {

// sums[r][x] += factor * x(i + r, j + x).
template <class T>
void add_rows(const Matrix& x, int64_t i, int64_t j, int64_t rows, int64_t cols, T factor, T* sums, int64_t stride) {
  constexpr int64_t kBuffer = 256;
  T buffer[kBuffer];
  const int64_t step = x.cs / size_of(x.element);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; c += kBuffer) {
      const int64_t n = std::min(kBuffer, cols - c);
      if (r == 0 || x.rs != 0 || cols > kBuffer) load<T>(x.element, x.at(i + r, j + c), step, buffer, n);
      T* t = sums + r * stride + c;
      for (int64_t at = 0; at < n; ++at) t[at] += factor * buffer[at];
    }
  }
}

template <class T>
void copy_rows(const T* from, int64_t stride, int64_t rows, int64_t cols, char* to, int64_t to_stride) {
  for (int64_t r = 0; r < rows; ++r, from += stride, to += to_stride) {
    std::memcpy(to, from, static_cast<size_t>(cols) * sizeof(T));
  }
}

}  // namespace

bool read_launch(const Launch& launch, Gemm& g) {
  g.alpha = launch.scalars[0].as_f64();
  g.beta = launch.scalars[1].as_f64();
  return read_tensors(launch, g.beta != 0, g);
}

template <class T>
void finish(const Gemm& g, int64_t i, int64_t j, int64_t rows, int64_t cols, T* sums, int64_t stride) {
  constexpr Element kSum = sizeof(T) == 8 ? Element::F64 : Element::F32;
  const int64_t bytes = size_of(g.d.element), all = (rows - 1) * stride + cols;
  if (g.alpha != 1) {
    const T alpha = static_cast<T>(g.alpha);
    for (int64_t x = 0; x < all; ++x) sums[x] *= alpha;
  }
  if (g.c.data) add_rows(g.c, i, j, rows, cols, static_cast<T>(g.beta), sums, stride);
  if (g.bias.data) add_rows(g.bias, i, j, rows, cols, T(1), sums, stride);
  if (g.d.cs != bytes) {
    for (int64_t r = 0; r < rows; ++r) {
      store<T>(g.d.element, g.d.at(i + r, j), g.d.cs / bytes, sums + r * stride, cols);
    }
  } else if (g.d.element == kSum) {
    copy_rows(sums, stride, rows, cols, g.d.at(i, j), g.d.rs);
  } else {
    // Rounded all at once in a buffer, then laid down row by row.
    constexpr int64_t kBuffer = 1024;
    uint16_t halves[kBuffer];
    const int64_t at_once = std::clamp(kBuffer / stride, int64_t{1}, rows);
    for (int64_t r = 0; r < rows; r += at_once) {
      const int64_t count = std::min(at_once, rows - r);
      for (int64_t c = 0; c < cols; c += kBuffer) {
        const int64_t n = std::min(kBuffer, cols - c);
        store<T>(g.d.element, halves, 1, sums + r * stride + c, (count - 1) * stride + n);
        copy_rows(halves, stride, count, n, g.d.at(i + r, j + c), g.d.rs);
      }
    }
  }
}

template void finish<float>(const Gemm&, int64_t, int64_t, int64_t, int64_t, float*, int64_t);
template void finish<double>(const Gemm&, int64_t, int64_t, int64_t, int64_t, double*, int64_t);

}  // namespace baracuda::matmul
