// Matrix products on the CPU: a launch's problem with its numbers, and what happens to a finished tile of sums.
#pragma once
#include "host/convert.h"
#include "ops/matmul/problem.h"

namespace baracuda::matmul {

// One result of the batch.
inline Gemm slice(const Gemm& g, int64_t index) {
  Gemm s = g;
  for (int i = g.batch_rank - 1; i >= 0; --i) {
    int64_t at = index % g.batch_shape[i];
    index /= g.batch_shape[i];
    for (Matrix* x : s.moved()) {
      if (x->data) x->data += at * x->batch[i];
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

// Of matmul, with its numbers. False when there is nothing to do.
bool read_launch(const Launch& launch, Gemm& g);

// Turns `rows` x `cols` sums (row length `stride`) at (i, j) into D: alpha, scales, C, bias, activation, one rounding.
// `sums` is used up.
template <class T>
void finish(const Gemm& g, int64_t i, int64_t j, int64_t rows, int64_t cols, T* sums, int64_t stride);

template <class T>
void activate_all(int32_t activation, T* sums, int64_t n);

// Sums of integers are those of two's complement; of 32 bits they may become floats.
template <>
void finish(const Gemm&, int64_t, int64_t, int64_t, int64_t, uint32_t*, int64_t);
template <>
void finish(const Gemm&, int64_t, int64_t, int64_t, int64_t, uint64_t*, int64_t);
extern template void activate_all<float>(int32_t, float*, int64_t);
extern template void activate_all<double>(int32_t, double*, int64_t);
extern template void finish<float>(const Gemm&, int64_t, int64_t, int64_t, int64_t, float*, int64_t);
extern template void finish<double>(const Gemm&, int64_t, int64_t, int64_t, int64_t, double*, int64_t);

}  // namespace baracuda::matmul
