// bf16 products on machines with vdpbf16ps.
#include <atomic>
#include <cstdlib>
#include "ops/matmul/cpu.h"

#include "ops/matmul/packed.h"

namespace baracuda::matmul {

#if defined(__AVX512BF16__)
namespace {

bool has_subnormal(const char* data, int64_t stride, int64_t n) {
  uint32_t found = 0;
  if (stride == 2) {
    for (int64_t i = 0; i < n; ++i) {
      const uint16_t v = read<uint16_t>(data + 2 * i);
      found |= (v & 0x7f80) == 0 && (v & 0x7f) != 0;
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const uint16_t v = read<uint16_t>(data + i * stride);
      found |= (v & 0x7f80) == 0 && (v & 0x7f) != 0;
    }
  }
  return found != 0;
}

// Whether any of the batch's matrices holds one. Dimensions that repeat the same memory are looked at once.
bool any_subnormal(const Gemm& g, Matrix x, int64_t rows, int64_t cols) {
  if (std::abs(x.rs) < std::abs(x.cs)) std::swap(x.rs, x.cs), std::swap(rows, cols);
  if (x.rs == 0) rows = 1;
  if (x.cs == 2 && x.rs == 2 * cols) cols *= rows, rows = 1;
  int64_t products = 1, shape[2 * kMaxRank], strides[2 * kMaxRank];
  int rank = 0;
  auto add = [&](int64_t size, int64_t stride) {
    if (stride != 0 && size != 1) products *= shape[rank] = size, strides[rank++] = stride;
  };
  for (int i = 0; i < g.batch_rank; ++i) add(g.batch_shape[i], x.batch[i]);
  for (int i = 0; i < g.part_rank; ++i) add(g.part_shape[i], x.part[i]);
  std::atomic<bool> found{false};
  parallel_for(products * rows, std::max<int64_t>(1, kPackWork / std::max<int64_t>(1, cols)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t at = begin; at < end && !found.load(std::memory_order_relaxed); ++at) {
                   const char* data = x.at(at % rows, 0);
                   int64_t product = at / rows;
                   for (int i = rank - 1; i >= 0; product /= shape[i--]) data += product % shape[i] * strides[i];
                   if (has_subnormal(data, x.cs, cols)) found.store(true, std::memory_order_relaxed);
                 }
               });
  return found.load(std::memory_order_relaxed);
}

}  // namespace

void run_bf16(const Gemm& g, void* workspace) {
  if (any_subnormal(g, g.a, g.m, g.k) || any_subnormal(g, g.b, g.k, g.n)) return run_packed(g, workspace);
  Packed<Bf16Pairs>(g, workspace).run();
}

#else

void run_bf16(const Gemm& g, void* workspace) { run_packed(g, workspace); }

#endif

}  // namespace baracuda::matmul
