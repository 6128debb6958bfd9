// A launch read as one batch of matrix products D = act(alpha * A B + beta * C + bias), with dimensions merged and D's
// columns made the fast ones. Quantized products are D = act(scale_a * scale_b * A B + bias).
#pragma once
#include <algorithm>
#include <array>
#include <utility>

#include "core/args.h"
#include "core/attrs.h"
#include "core/launch.h"
#include "ops/matmul/activation.h"

namespace baracuda::matmul {

BCU_ATTRS(MatmulAttrs, (i64, activation))
BCU_ARGS(MatmulArgs, (a, b, c, bias, out), (alpha, beta))
BCU_ARGS(ScaledArgs, (a, b, scale_a, scale_b, bias, out), ())
// The columns of a @ b are two halves; gate_first: the first one is what the gate's function is applied to.
BCU_ATTRS(GatedMatmulAttrs, (i64, gate), (i64, gate_first))
BCU_ARGS(GatedMatmulArgs, (a, b, out), ())
enum Gate : int64_t { kGlu, kReGlu, kSwiGlu, kGeGlu };

// Strides are in bytes. `data` is null for what the plan does not have, and for a C that beta = 0 leaves unread.
struct Matrix {
  char* data = nullptr;
  Element element = Element::F32;
  int64_t rs = 0, cs = 0;
  int64_t batch[kMaxRank] = {};
  int64_t part[kMaxRank] = {};  // A and B only

  char* at(int64_t i, int64_t j) const { return data + i * rs + j * cs; }
};

struct Gemm {
  int64_t m = 1, n = 1, k = 1;
  int32_t batch_rank = 0;
  int64_t batch_shape[kMaxRank] = {};
  int64_t batch = 1;
  // Every sum runs over this many products of A and B: batch dimensions that D does not have (a broadcast's gradient).
  int32_t part_rank = 0;
  int64_t part_shape[kMaxRank] = {};
  int64_t parts = 1;
  Matrix a, b, c, d, bias;
  Matrix scale_a, scale_b;  // f32 factors of the sums: of A's rows and B's columns, wherever transposing puts them
  double alpha = 1, beta = 0;
  int64_t whole_alpha = 1, whole_beta = 0;  // of integers
  int32_t activation = kNoActivation;
  bool quantized = false;  // the launch has scales in place of alpha and beta

  // What D's batch dimensions move.
  std::array<Matrix*, 6> moved() { return {&a, &b, &c, &d, &scale_a, &scale_b}; }
  bool is_plain() const {  // D is A B
    return alpha == 1 && whole_alpha == 1 && activation == kNoActivation && !c.data && !bias.data && !scale_a.data &&
           !scale_b.data;
  }
};

// D^T = B^T A^T: the same sums in the same order.
inline void transpose(Gemm& g) {
  std::swap(g.a, g.b);
  std::swap(g.m, g.n);
  for (Matrix* x : g.moved()) std::swap(x->rs, x->cs);
  std::swap(g.bias.rs, g.bias.cs);
}

// `t` as a matrix, its dimensions aligned at the last one; those it lacks or has with size 1 get stride 0.
inline Matrix matrix(const TensorView& t, const Gemm& g) {
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
inline void split_batch(Gemm& g, const TensorView& a, const TensorView& b, const TensorView& out) {
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
      for (Matrix* x : g.moved()) x->batch[to] = x->batch[i];
    } else {
      const int to = g.part_rank++;
      g.parts *= g.part_shape[to] = read;
      for (Matrix* x : {&g.a, &g.b}) x->part[to] = x->batch[i];
    }
  }
}

// Merges parts whose products follow each other in memory into one longer sum.
inline void merge_parts(Gemm& g) {
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
inline void merge_rows(Gemm& g) {
  while (g.batch_rank > 0) {
    const int i = g.batch_rank - 1;
    const int64_t size = g.batch_shape[i];
    if (size != 1) {
      if (g.b.batch[i] != 0 || g.part_rank > 0) return;
      for (Matrix* x : {&g.a, &g.c, &g.d, &g.scale_a, &g.scale_b}) {
        if (g.m != 1 && x->data && x->batch[i] != g.m * x->rs) return;
      }
      for (Matrix* x : {&g.a, &g.c, &g.d, &g.scale_a, &g.scale_b}) {
        if (g.m == 1) x->rs = x->batch[i];
      }
      g.m *= size;
    }
    --g.batch_rank;
    g.batch /= std::max<int64_t>(size, 1);
  }
}

// Whatever `others` the plan has, and the sizes. False when there is nothing to do.
inline bool read_views(const TensorView& a, const TensorView& b, const TensorView& out,
                       std::initializer_list<std::pair<const TensorView*, Matrix*>> others, Gemm& g) {
  if (out.numel() == 0) return false;
  g.m = out.shape[out.rank - 2], g.n = out.shape[out.rank - 1], g.k = a.shape[a.rank - 1];
  g.batch_rank = std::max({a.rank, b.rank, out.rank}) - 2;
  g.a = matrix(a, g), g.b = matrix(b, g), g.d = matrix(out, g);
  for (auto [view, to] : others) {
    if (view->present()) *to = matrix(*view, g);
  }
  split_batch(g, a, b, out);
  // Sums of nothing have one part, of no products: nothing may be left for a second one to be added to.
  if (g.parts == 0 || g.k == 0) g.k = 0, g.part_rank = 0, g.parts = 1;
  merge_rows(g);
  merge_parts(g);
  const int64_t unit = size_of(out.element);
  if (g.d.cs != unit && (g.d.rs == unit || g.n == 1)) transpose(g);
  return true;
}

inline bool read_scaled(const Launch& launch, Gemm& g) {
  using Args = ScaledArgs;
  g.quantized = true;
  g.activation = static_cast<int32_t>(attributes<MatmulAttrs>(launch).activation);
  return read_views(
      launch[Args::a], launch[Args::b], launch[Args::out],
      {{&launch[Args::scale_a], &g.scale_a}, {&launch[Args::scale_b], &g.scale_b}, {&launch[Args::bias], &g.bias}}, g);
}

inline bool read_tensors(const Launch& launch, bool with_c, Gemm& g) {
  using Args = MatmulArgs;
  g.activation = static_cast<int32_t>(attributes<MatmulAttrs>(launch).activation);
  Matrix unread;
  return read_views(launch[Args::a], launch[Args::b], launch[Args::out],
                    {{&launch[Args::c], with_c ? &g.c : &unread}, {&launch[Args::bias], &g.bias}}, g);
}

}  // namespace baracuda::matmul
