// f32 and f64 products through OpenBLAS, single-threaded on fixed tiles of D from our threads: tiles follow from the
// shape alone, so bits do not depend on the number of threads.
#include <algorithm>

#include "backends/cpu/blas.h"
#include "core/parallel.h"
#include "ops/matmul/cpu.h"

namespace baracuda::matmul {
namespace {

constexpr int64_t kTileSide = 256, kLeastSide = 64, kTilesWanted = 8;
constexpr int64_t kTileWork = 64 * 1024;  // multiply-adds that are worth a thread's while

struct Operand {
  BlasTranspose is = BlasTranspose::No;
  int64_t ld = 0;
};

// `x` as BLAS wants it: one unit stride and a leading dimension that holds a row.
bool describe(const Matrix& x, int64_t rows, int64_t cols, int64_t unit, Operand& out) {
  if (x.cs == unit || cols == 1) {
    out = {BlasTranspose::No, rows == 1 ? cols : x.rs / unit};
    return (x.cs == unit || x.rs != 0) && out.ld >= cols && out.ld <= INT32_MAX;
  }
  if (x.rs == unit || rows == 1) {
    out = {BlasTranspose::Yes, cols == 1 ? rows : x.cs / unit};
    return out.ld >= rows && out.ld <= INT32_MAX;
  }
  return false;
}

bool same_view(const Matrix& x, const Matrix& y) {
  return x.data == y.data && x.rs == y.rs && x.cs == y.cs && x.element == y.element &&
         std::equal(x.batch, x.batch + kMaxRank, y.batch);
}

// D's tile becomes beta * C + bias.
template <class T>
void prepare(const Gemm& g, int64_t i, int64_t j, int64_t rows, int64_t cols) {
  T zeros[kTileSide];
  Gemm plain = g;
  plain.activation = kNoActivation;
  for (int64_t r = i; r < i + rows; ++r) {
    std::fill(zeros, zeros + cols, T(0));
    finish(plain, r, j, 1, cols, zeros, cols);
  }
}

// Applies the activation to D's tile, which holds finished sums: BLAS's elements are those that it sums in.
template <class T>
void activate_tile(const Gemm& g, int64_t i, int64_t j, int64_t rows, int64_t cols) {
  for (int64_t r = i; r < i + rows; ++r) activate_all(g.activation, reinterpret_cast<T*>(g.d.at(r, j)), cols);
}

template <class T>
void run_tiles(const Gemm& g, BlasGemm<T> gemm, const Operand& a, const Operand& b, const Operand& d) {
  const bool onto_d = g.c.data && !g.bias.data && same_view(g.c, g.d);
  const bool prepared = !onto_d && (g.c.data || g.bias.data);
  const T beta = onto_d ? static_cast<T>(g.beta) : prepared ? T(1) : T(0);
  int64_t side = kTileSide;
  auto tiles = [&](int64_t n) { return (n + side - 1) / side; };
  while (side > kLeastSide && g.batch * tiles(g.m) * tiles(g.n) < kTilesWanted) side /= 2;
  const int64_t across = tiles(g.n), per_product = tiles(g.m) * across;
  const int64_t grain = std::max<int64_t>(1, kTileWork / (std::min(side, g.m) * std::min(side, g.n) * g.k));
  parallel_for(g.batch * per_product, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const Gemm one = slice(g, t / per_product);
      const int64_t i = t % per_product / across * side, j = t % across * side;
      const int64_t rows = std::min(side, g.m - i), cols = std::min(side, g.n - j);
      if (prepared) prepare<T>(one, i, j, rows, cols);
      gemm(BlasOrder::RowMajor, a.is, b.is, static_cast<int>(rows), static_cast<int>(cols), static_cast<int>(g.k),
           static_cast<T>(g.alpha), reinterpret_cast<const T*>(one.a.at(i, 0)), static_cast<int>(a.ld),
           reinterpret_cast<const T*>(one.b.at(0, j)), static_cast<int>(b.ld), beta,
           reinterpret_cast<T*>(one.d.at(i, j)), static_cast<int>(d.ld));
      if (g.activation != kNoActivation) activate_tile<T>(one, i, j, rows, cols);
    }
  });
}

}  // namespace

bool run_blas(const Gemm& g) {
  const Blas* library = blas();
  const int64_t unit = size_of(g.d.element);
  Operand a, b, d;
  // alpha = 0 would let BLAS skip NaN and inf in A and B.
  if (!library || g.parts > 1 || g.k == 0 || g.alpha == 0 || g.k > INT32_MAX) return false;
  if (!describe(g.a, g.m, g.k, unit, a) || !describe(g.b, g.k, g.n, unit, b) || !describe(g.d, g.m, g.n, unit, d) ||
      d.is == BlasTranspose::Yes)
    return false;
  g.d.element == Element::F64 ? run_tiles<double>(g, library->dgemm, a, b, d)
                              : run_tiles<float>(g, library->sgemm, a, b, d);
  return true;
}

}  // namespace baracuda::matmul
