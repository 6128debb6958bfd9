// A product as BLAS libraries take it: column-major matrices with leading dimensions, one strided batch, and a bias
// along the columns of its (row-major) result. Problems that this cannot express go to other kernels.
#pragma once
#include <algorithm>

#include "core/row.h"
#include "ops/matmul/problem.h"

namespace baracuda::matmul {

inline constexpr int64_t kMostCalls = 64;        // batches that one stride cannot cross are called one by one
inline constexpr int64_t kMostTerms = 1 << 16;   // what the promises of library rows count with
inline constexpr int64_t kMostSize = INT32_MAX;  // of a dimension

// D (n x m, column-major: our rows) = X Y with X = B^T and Y = A^T. Strides and leading dimensions in elements.
struct Strided {
  int64_t rows = 0, columns = 0, k = 0;  // D's rows are our columns
  int64_t x_transposed = 0, y_transposed = 0;
  int64_t ldx = 0, ldy = 0, ldc = 0, ldd = 0;
  int64_t batch = 1, stride_x = 0, stride_y = 0, stride_c = 0, stride_d = 0;
  int64_t bias = 0;  // whether a vector is added to every column of D
  bool operator==(const Strided&) const = default;
};

// One call's matrices; the calls of a loop differ by offsets.
struct StridedCalls {
  Strided shape;
  char *x = nullptr, *y = nullptr, *c = nullptr, *d = nullptr, *bias = nullptr;  // c: null without one
  const char *scale_x = nullptr, *scale_y = nullptr;                             // of 8-bit elements; null: 1
  double alpha = 1, beta = 0;
  int32_t loop_rank = 0;
  int64_t loops = 1;
  int64_t loop_shape[kMaxRank] = {};
  int64_t loop_x[kMaxRank] = {}, loop_y[kMaxRank] = {}, loop_c[kMaxRank] = {}, loop_d[kMaxRank] = {};  // bytes
};

// Whether lines of `length` elements lie one after another; `lead` is how far apart, in elements.
inline bool lines(int64_t along, int64_t across, int64_t length, int64_t count, int64_t unit, int64_t& lead) {
  if (length != 1 && along != unit) return false;
  lead = count == 1 ? length : across / unit;
  return lead >= length && (count == 1 || across % unit == 0);
}

// Reads `x`, of rows x columns, as column-major of columns x rows, or as its transpose.
inline bool operand(const Matrix& x, int64_t rows, int64_t columns, int64_t unit, int64_t& transposed, int64_t& lead) {
  transposed = 0;
  if (lines(x.cs, x.rs, columns, rows, unit, lead)) return true;
  transposed = 1;
  return lines(x.rs, x.cs, rows, columns, unit, lead);
}

// Takes the batch dimension with most entries as the strided one, after merging; the others are looped over.
inline bool batches(const Gemm& g, int64_t factor, int64_t result, StridedCalls& out) {
  const Matrix* all[] = {&g.b, &g.a, &g.c, &g.d};
  const int64_t units[] = {factor, factor, result, result};
  int64_t shape[kMaxRank], strides[4][kMaxRank];
  int rank = 0;
  for (int i = 0; i < g.batch_rank; ++i) {
    if (g.batch_shape[i] == 1) continue;
    bool joins = rank > 0;
    for (int m = 0; m < 4 && joins; ++m)
      joins = !all[m]->data || strides[m][rank - 1] == g.batch_shape[i] * all[m]->batch[i];
    const int to = joins ? rank - 1 : rank++;
    shape[to] = joins ? shape[to] * g.batch_shape[i] : g.batch_shape[i];
    for (int m = 0; m < 4; ++m) strides[m][to] = all[m]->data ? all[m]->batch[i] : 0;
  }
  auto usable = [&](int i) {
    bool fits = shape[i] <= kMostSize;
    for (int m = 0; m < 4; ++m) fits &= strides[m][i] >= 0 && strides[m][i] % units[m] == 0;
    return fits;
  };
  int best = -1;
  for (int i = 0; i < rank; ++i)
    if (usable(i) && (best < 0 || shape[i] > shape[best])) best = i;
  Strided& s = out.shape;
  for (int i = 0; i < rank; ++i) {
    if (i == best) {
      s.batch = shape[i];
      s.stride_x = strides[0][i] / factor, s.stride_y = strides[1][i] / factor;
      s.stride_c = strides[2][i] / result, s.stride_d = strides[3][i] / result;
      continue;
    }
    const int to = out.loop_rank++;
    out.loops *= out.loop_shape[to] = shape[i];
    out.loop_x[to] = strides[0][i], out.loop_y[to] = strides[1][i];
    out.loop_c[to] = strides[2][i], out.loop_d[to] = strides[3][i];
    if (out.loops > kMostCalls) return false;
  }
  return true;
}

// A C that is one row for all, taken as it is, is a bias.
inline bool is_row(const Gemm& g) {
  bool row = g.c.data && !g.bias.data && g.beta == 1 && (g.m == 1 || g.c.rs == 0);
  for (int i = 0; i < g.batch_rank; ++i) row &= g.c.batch[i] == 0 || g.batch_shape[i] == 1;
  return row;
}

// False where a library has no words for the problem. `g` has D's columns as the fast ones if any are.
inline bool strided(const Gemm& problem, StridedCalls& out) {
  Gemm g = problem;
  const int64_t unit = size_of(g.a.element), stored = size_of(g.d.element);
  if (g.parts > 1 || g.k == 0 || g.k > kMostTerms || std::max(g.m, g.n) > kMostSize) return false;
  if (is_row(g)) g.bias = g.c, g.bias.rs = 0, g.c = Matrix{};
  int64_t unused = 0;
  Strided& s = out.shape;
  s.rows = g.n, s.columns = g.m, s.k = g.k;
  if (!operand(g.b, g.k, g.n, unit, s.x_transposed, s.ldx) || !operand(g.a, g.m, g.k, unit, s.y_transposed, s.ldy))
    return false;
  if (!lines(g.d.cs, g.d.rs, g.n, g.m, stored, s.ldd)) return false;
  s.ldc = s.ldd;
  if (g.c.data && !lines(g.c.cs, g.c.rs, g.n, g.m, stored, s.ldc)) return false;
  s.bias = g.bias.data != nullptr;
  if (s.bias && ((g.m != 1 && g.bias.rs != 0) || !lines(g.bias.cs, 0, g.n, 1, stored, unused))) return false;
  if (!batches(g, unit, stored, out)) return false;
  if (!g.c.data) s.stride_c = s.stride_d;
  out.x = g.b.data, out.y = g.a.data, out.c = g.c.data, out.d = g.d.data, out.bias = g.bias.data;
  return true;
}

// The problem's tensors as they would be if allocated for it, A and B plain or transposed.
template <class Args>
struct Imagined {
  static constexpr int kMost = 6;
  TensorView views[kMost];
  int32_t first[kMost + 1] = {0, 1, 2, 3, 4, 5, 6};
  Scalar scalars[2];
  Launch launch;

  Imagined(const Problem& p, bool a_transposed, bool b_transposed) {
    for (int i = 0; i < p.n_params; ++i) {
      const ParamMeta& meta = p.params[i];
      TensorView& t = views[i];
      t.rank = meta.rank, t.element = meta.element, t.data = reinterpret_cast<void*>(intptr_t{1} << 20);
      std::copy_n(meta.shape, kMaxRank, t.shape);
      const bool exchanged = (i == Args::a && a_transposed) || (i == Args::b && b_transposed);
      if (exchanged) std::swap(t.shape[t.rank - 1], t.shape[t.rank - 2]);
      for (int64_t d = t.rank - 1, stride = 1; d >= 0; stride *= t.shape[d--]) t.strides[d] = stride;
      if (!exchanged) continue;
      std::swap(t.shape[t.rank - 1], t.shape[t.rank - 2]);
      std::swap(t.strides[t.rank - 1], t.strides[t.rank - 2]);
    }
    launch.tensors = views, launch.first = first, launch.n_params = p.n_params, launch.element = p.element;
    launch.attrs = p.attrs;
  }
  // False where the call would have nothing to do, or no words.
  bool read(StridedCalls& out) const {
    Gemm g;
    if constexpr (std::is_same_v<Args, ScaledArgs>) return read_scaled(launch, g) && strided(g, out);
    g.alpha = g.beta = 1;
    return read_tensors(launch, true, g) && strided(g, out);
  }
};

// Whether some way of storing A and B makes the problem one that a library takes.
inline bool has_strided(const Problem& p) {
  bool any = false;
  for (int i = 0; i < 4; ++i) {
    StridedCalls calls;
    any |= Imagined<MatmulArgs>(p, i & 1, i & 2).read(calls);
  }
  return any;
}
inline Reason strided_enough(const Problem& p) {
  if (has_strided(p)) return {};
  const ParamMeta &a = p.params[MatmulArgs::a], &out = p.params[MatmulArgs::out];
  int64_t size = 1;
  for (int i = 0; i < out.rank; ++i) size *= out.shape[i];
  const char* other = "the portable row takes it";
  if (size == 0 || a.shape[a.rank - 1] == 0) return {"shape", "a product that has elements and terms", other};
  if (a.shape[a.rank - 1] > kMostTerms)
    return {"shape", "sums of at most 65536 products, which the promise covers", "the portable row sums in blocks"};
  ParamMeta without_c[Imagined<MatmulArgs>::kMost];
  std::copy_n(p.params, p.n_params, without_c);
  without_c[MatmulArgs::c].rank = -1;
  Problem other_problem = p;
  other_problem.params = without_c;
  if (has_strided(other_problem)) return {"c_shape", "a C of the output's shape, or one row for all", other};
  return {"shape", "batches of one stride, in at most 64 calls, none of them summed over", other};
}

// What libraries multiply of 8-bit elements: A's rows and B's columns contiguous, all lines of whole packs.
inline int64_t scaled_pack(Element factors) { return factors == Element::I8 ? 4 : 16; }
inline bool scaled_layout(const Strided& s, Element factors) {
  const int64_t pack = scaled_pack(factors);
  int64_t all = s.rows | s.k | s.ldx | s.ldy | s.ldd;
  if (s.batch > 1) all |= s.stride_x | s.stride_y | s.stride_d;
  return s.x_transposed == 1 && s.y_transposed == 0 && all % pack == 0;
}
inline Reason scaled_enough(const Problem& p) {
  using Args = ScaledArgs;
  const ParamMeta &a = p.params[Args::a], &bias = p.params[Args::bias];
  const char* other = "the portable row takes it";
  if (attributes<MatmulAttrs>(p).activation != kNoActivation)
    return {"activation", "none: cuBLASLt promises nothing about its own", "the portable row applies it in f32"};
  if (p.element == Element::I8 && bias.rank >= 0) return {"bias", "none with 32-bit results", other};
  if (p.aux == Element::F32 && bias.rank >= 0) return {"bias", "none with f32 results", other};
  for (const ParamMeta* scale : {&p.params[Args::scale_a], &p.params[Args::scale_b]}) {
    for (int i = 0; i < scale->rank; ++i)
      if (scale->shape[i] != 1) return {"scale", "one scale for a whole tensor", other};
  }
  StridedCalls calls;
  if (!Imagined<Args>(p, false, true).read(calls)) {
    if (a.shape[a.rank - 1] > kMostTerms)
      return {"shape", "sums of at most 65536 products, which the promise covers", other};
    return {"shape", "a product with elements and terms, its batches of one stride, in at most 64 calls", other};
  }
  if (!scaled_layout(calls.shape, p.element))
    return {"shape", p.element == Element::I8 ? "K and N of multiples of 4" : "K and N of multiples of 16", other};
  return {};
}

}  // namespace baracuda::matmul
