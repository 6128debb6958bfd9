// A launch read as one batch of matrix products D = alpha * A B + beta * C + bias, with dimensions merged and D's
// columns made the fast ones; and what happens to a finished tile of sums.
#pragma once
#include <utility>

#include "core/convert.h"
#include "core/launch.h"

namespace baracuda::matmul {

// Strides are in bytes. `data` is null for a C or bias that the plan does not have or that beta = 0 leaves unread.
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
  double alpha = 1, beta = 0;
};

// One result of the batch.
inline Gemm slice(const Gemm& g, int64_t index) {
  Gemm s = g;
  for (int i = g.batch_rank - 1; i >= 0; --i) {
    int64_t at = index % g.batch_shape[i];
    index /= g.batch_shape[i];
    for (auto [from, to] : {std::pair{&g.a, &s.a}, {&g.b, &s.b}, {&g.c, &s.c}, {&g.d, &s.d}}) {
      if (to->data) to->data += at * from->batch[i];
    }
  }
  s.batch_rank = 0, s.batch = 1;
  return s;
}

// A's and B's matrices that part `index` multiplies.
inline void move_to_part(Gemm& g, int64_t index) {
  for (int i = g.part_rank - 1; i >= 0; --i) {
    const int64_t at = index % g.part_shape[i];
    index /= g.part_shape[i];
    g.a.data += at * g.a.part[i], g.b.data += at * g.b.part[i];
  }
}

// Signature: a, b, c (optional), bias (optional), out; scalars alpha, beta. False when there is nothing to do.
bool read_launch(const Launch& launch, Gemm& g);

// D^T = B^T A^T: the same sums in the same order.
inline void transpose(Gemm& g) {
  std::swap(g.a, g.b);
  std::swap(g.m, g.n);
  for (Matrix* x : {&g.a, &g.b, &g.c, &g.d, &g.bias}) std::swap(x->rs, x->cs);
}

// Turns `rows` x `cols` sums (row length `stride`) at (i, j) into D: alpha, C, bias, one rounding. `sums` is used up.
template <class T>
void finish(const Gemm& g, int64_t i, int64_t j, int64_t rows, int64_t cols, T* sums, int64_t stride);

extern template void finish<float>(const Gemm&, int64_t, int64_t, int64_t, int64_t, float*, int64_t);
extern template void finish<double>(const Gemm&, int64_t, int64_t, int64_t, int64_t, double*, int64_t);

}  // namespace baracuda::matmul
