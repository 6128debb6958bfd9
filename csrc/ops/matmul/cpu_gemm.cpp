// Reading launches and finishing tiles: see gemm.h.
#include "ops/matmul/gemm.h"

#include <algorithm>
#include <type_traits>

namespace baracuda::matmul {
namespace {

// sums[r][c] = join(sums[r][c], x(i + r, j + c)).
template <class T, class Join>
void join_rows(const Matrix& x, int64_t i, int64_t j, int64_t rows, int64_t cols, T* sums, int64_t stride, Join join) {
  constexpr int64_t kBuffer = 256;
  using Read = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  Read buffer[kBuffer];
  const int64_t step = x.cs / size_of(x.element);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; c += kBuffer) {
      const int64_t n = std::min(kBuffer, cols - c);
      if (r == 0 || x.rs != 0 || cols > kBuffer) load<Read>(x.element, x.at(i + r, j + c), step, buffer, n);
      T* t = sums + r * stride + c;
      for (int64_t at = 0; at < n; ++at) t[at] = join(t[at], static_cast<T>(buffer[at]));
    }
  }
}

// Rows are short: a call of memcpy, or what the compiler makes of one, takes longer than a loop of vectors.
template <class T>
void copy_rows(const T* from, int64_t stride, int64_t rows, int64_t cols, char* to, int64_t to_stride) {
  for (int64_t r = 0; r < rows; ++r, from += stride, to += to_stride) {
    T* row = reinterpret_cast<T*>(to);
#pragma GCC ivdep
    for (int64_t c = 0; c < cols; ++c) row[c] = from[c];
  }
}

}  // namespace

bool read_launch(const Launch& launch, Gemm& g) {
  const Scalar &alpha = launch.scalars[MatmulArgs::alpha], &beta = launch.scalars[MatmulArgs::beta];
  if (is_float(launch.element)) {
    g.alpha = alpha.as_f64(), g.beta = beta.as_f64();
  } else {
    g.whole_alpha = alpha.as_i64(), g.whole_beta = beta.as_i64();
  }
  return read_tensors(launch, g.beta != 0 || g.whole_beta != 0, g);
}

// A loop for each, which the compiler makes vectors of.
template <class T>
void activate_all(int32_t activation, T* sums, int64_t n) {
  switch (activation) {
    case kRelu:
      for (int64_t x = 0; x < n; ++x) sums[x] = relu(sums[x]);
      break;
    case kGelu:
      for (int64_t x = 0; x < n; ++x) sums[x] = math::gelu(sums[x]);
      break;
    case kGeluTanh:
      for (int64_t x = 0; x < n; ++x) sums[x] = gelu_tanh(sums[x]);
      break;
    case kSilu:
      for (int64_t x = 0; x < n; ++x) sums[x] = math::silu(sums[x]);
      break;
  }
}

template <class T>
void finish(const Gemm& g, int64_t i, int64_t j, int64_t rows, int64_t cols, T* sums, int64_t stride) {
  constexpr Element kSum = sizeof(T) == 8 ? Element::F64 : Element::F32;
  const int64_t bytes = size_of(g.d.element), all = (rows - 1) * stride + cols;
  if (g.alpha != 1) {
    const T alpha = static_cast<T>(g.alpha);
    for (int64_t x = 0; x < all; ++x) sums[x] *= alpha;
  }
  for (const Matrix* scale : {&g.scale_a, &g.scale_b}) {
    if (scale->data) join_rows(*scale, i, j, rows, cols, sums, stride, [](T sum, T by) { return sum * by; });
  }
  if (g.c.data) {
    const T beta = static_cast<T>(g.beta);
    join_rows(g.c, i, j, rows, cols, sums, stride, [beta](T sum, T c) { return sum + beta * c; });
  }
  if (g.bias.data) join_rows(g.bias, i, j, rows, cols, sums, stride, [](T sum, T bias) { return sum + bias; });
  activate_all(g.activation, sums, all);
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

namespace {

// Integers modulo 2^n.
template <class T>
void finish_whole(const Gemm& g, int64_t i, int64_t j, int64_t rows, int64_t cols, T* sums, int64_t stride) {
  constexpr int64_t kBuffer = 256;
  const T alpha = static_cast<T>(g.whole_alpha), beta = static_cast<T>(g.whole_beta);
  if (alpha != 1) {
    for (int64_t x = 0; x < (rows - 1) * stride + cols; ++x) sums[x] *= alpha;
  }
  if (g.c.data) join_rows(g.c, i, j, rows, cols, sums, stride, [beta](T sum, T c) { return sum + beta * c; });
  if (g.bias.data) join_rows(g.bias, i, j, rows, cols, sums, stride, [](T sum, T bias) { return sum + bias; });
  uint64_t wide[kBuffer];
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; c += kBuffer) {
      const int64_t n = std::min(kBuffer, cols - c);
      std::copy_n(sums + r * stride + c, n, wide);
      store<uint64_t>(g.d.element, g.d.at(i + r, j + c), g.d.cs / size_of(g.d.element), wide, n);
    }
  }
}

// Sums of 32 bits that are scaled: as many rows at once as a buffer holds.
void finish_scaled(const Gemm& g, int64_t i, int64_t j, int64_t rows, int64_t cols, const uint32_t* sums,
                   int64_t stride) {
  constexpr int64_t kBuffer = 1024;
  alignas(64) float wide[kBuffer];
  const int64_t at_once = std::clamp(kBuffer / stride, int64_t{1}, rows);
  for (int64_t r = 0; r < rows; r += at_once) {
    const int64_t count = std::min(at_once, rows - r);
    for (int64_t c = 0; c < cols; c += kBuffer) {
      const int64_t n = std::min(kBuffer, cols - c), all = (count - 1) * stride + n;
      const uint32_t* from = sums + r * stride + c;
      for (int64_t x = 0; x < all; ++x) wide[x] = static_cast<float>(static_cast<int32_t>(from[x]));
      finish(g, i + r, j + c, count, n, wide, stride);
    }
  }
}

}  // namespace

template <>
void finish(const Gemm& g, int64_t i, int64_t j, int64_t rows, int64_t cols, uint32_t* sums, int64_t stride) {
  is_float(g.d.element) ? finish_scaled(g, i, j, rows, cols, sums, stride)
                        : finish_whole(g, i, j, rows, cols, sums, stride);
}
template <>
void finish(const Gemm& g, int64_t i, int64_t j, int64_t rows, int64_t cols, uint64_t* sums, int64_t stride) {
  finish_whole(g, i, j, rows, cols, sums, stride);
}

template void activate_all<float>(int32_t, float*, int64_t);
template void activate_all<double>(int32_t, double*, int64_t);
template void finish<float>(const Gemm&, int64_t, int64_t, int64_t, int64_t, float*, int64_t);
template void finish<double>(const Gemm&, int64_t, int64_t, int64_t, int64_t, double*, int64_t);

}  // namespace baracuda::matmul
