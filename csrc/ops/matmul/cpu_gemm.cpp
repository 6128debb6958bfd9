// Reading launches and finishing tiles: see gemm.h.
#include "ops/matmul/gemm.h"

#include <algorithm>

namespace baracuda::matmul {
namespace {

// `t` as a matrix, its dimensions aligned at the last one; those it lacks or has with size 1 get stride 0.
Matrix matrix(const TensorView& t, const Gemm& g) {
  Matrix x;
  x.data = t.as<char>();
  x.element = t.element;
  const int64_t bytes = size_of(t.element);
  auto stride = [&](int from_last) {
    int i = t.rank - 1 - from_last;
    return i < 0 || t.shape[i] == 1 ? 0 : t.strides[i] * bytes;
  };
  x.cs = stride(0);
  x.rs = stride(1);
  for (int i = 0; i < g.batch_rank; ++i) x.batch[i] = stride(2 + g.batch_rank - 1 - i);
  return x;
}

// Splits the batch of A and B, of `g.batch_rank` dimensions, into what D has and what is summed over.
void split_batch(Gemm& g, const TensorView& a, const TensorView& b, const TensorView& out) {
  const int rank = g.batch_rank;
  g.batch_rank = 0;
  auto size = [&](const TensorView& t, int i) {
    const int at = t.rank - 2 - rank + i;
    return at < 0 ? int64_t{1} : t.shape[at];
  };
  for (int i = 0; i < rank; ++i) {
    const int64_t kept = size(out, i), all = std::max(size(a, i), size(b, i));
    const int64_t read = size(a, i) == 0 || size(b, i) == 0 ? 0 : all;
    if (kept == read || read == 1) {
      const int to = g.batch_rank++;
      g.batch *= g.batch_shape[to] = kept;
      for (Matrix* x : {&g.a, &g.b, &g.c, &g.d}) x->batch[to] = x->batch[i];
    } else {
      const int to = g.part_rank++;
      g.parts *= g.part_shape[to] = read;
      for (Matrix* x : {&g.a, &g.b}) x->part[to] = x->batch[i];
    }
  }
}

// Merges parts whose products follow each other in memory into one longer sum.
void merge_parts(Gemm& g) {
  while (g.part_rank > 0) {
    const int i = g.part_rank - 1;
    if (g.part_shape[i] != 1) {
      if (g.k != 1 && (g.a.part[i] != g.k * g.a.cs || g.b.part[i] != g.k * g.b.rs)) return;
      if (g.k == 1) g.a.cs = g.a.part[i], g.b.rs = g.b.part[i];
      g.k *= g.part_shape[i];
    }
    --g.part_rank;
    g.parts /= std::max<int64_t>(g.part_shape[i], 1);
  }
}

// Merges the batch's last dimension into the rows where all of them share one B: a linear layer over [.., seq,
// features].
void merge_rows(Gemm& g) {
  while (g.batch_rank > 0) {
    const int i = g.batch_rank - 1;
    const int64_t size = g.batch_shape[i];
    if (size != 1) {
      if (g.b.batch[i] != 0 || g.part_rank > 0) return;
      if (g.m == 1) {
        g.a.rs = g.a.batch[i], g.c.rs = g.c.batch[i], g.d.rs = g.d.batch[i];
      } else {
        for (const Matrix* x : {&g.a, &g.c, &g.d}) {
          if (x->data && x->batch[i] != g.m * x->rs) return;
        }
      }
      g.m *= size;
    }
    --g.batch_rank;
    g.batch /= std::max<int64_t>(size, 1);
  }
}

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
  const TensorView &a = launch[0], &b = launch[1], &c = launch[2], &bias = launch[3], &out = launch[4];
  if (out.numel() == 0) return false;
  g.m = out.shape[out.rank - 2], g.n = out.shape[out.rank - 1], g.k = a.shape[a.rank - 1];
  g.batch_rank = std::max({a.rank, b.rank, out.rank}) - 2;
  g.alpha = launch.scalars[0].as_f64();
  g.beta = launch.scalars[1].as_f64();
  g.a = matrix(a, g), g.b = matrix(b, g), g.d = matrix(out, g);
  if (c.present() && g.beta != 0) g.c = matrix(c, g);
  if (bias.present()) g.bias = matrix(bias, g);
  split_batch(g, a, b, out);
  if (g.parts == 0) g.k = 0, g.part_rank = 0, g.parts = 1;
  merge_rows(g);
  merge_parts(g);
  const int64_t unit = size_of(out.element);
  if (g.d.cs != unit && (g.d.rs == unit || g.n == 1)) transpose(g);
  return true;
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
