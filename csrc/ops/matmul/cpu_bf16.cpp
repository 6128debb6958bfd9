// bf16 products on machines with dot products of pairs of bf16.
#include <atomic>
#include <cstdlib>
#include "ops/matmul/cpu.h"

#include "ops/matmul/in_place.h"
#include "ops/matmul/packed.h"

namespace baracuda::matmul {

#if BCU_LEVEL_BF16
namespace {

constexpr uint16_t kNoValue = 0xffff;
constexpr int64_t kScanPiece = 64 * 1024;

// The least magnitude but zero, minus 1: zero itself wraps round to the largest.
uint16_t least_magnitude(const char* data, int64_t stride, int64_t n) {
  uint16_t least = kNoValue;
  if (stride == 2) {
    for (int64_t i = 0; i < n; ++i) {
      least = std::min(least, static_cast<uint16_t>((read<uint16_t>(data + 2 * i) & 0x7fff) - 1));
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      least = std::min(least, static_cast<uint16_t>((read<uint16_t>(data + i * stride) & 0x7fff) - 1));
    }
  }
  return least;
}

// The biased exponent of the least value but zero in all of the batch's matrices `x`; 0 for a subnormal one.
// Dimensions that repeat the same memory are looked at once.
int least_exponent(const Gemm& g, Matrix x, int64_t rows, int64_t cols) {
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
  // Long rows are cut, so that one large matrix keeps all threads busy.
  const int64_t cut = std::min(cols, kScanPiece), cuts = ceil_div(cols, std::max<int64_t>(1, cut));
  std::atomic<uint16_t> least{kNoValue};
  parallel_for(products * rows * cuts, std::max<int64_t>(1, kScanPiece / std::max<int64_t>(1, cut)),
               [&](int64_t begin, int64_t end) {
                 uint16_t mine = kNoValue;
                 for (int64_t at = begin; at < end; ++at) {
                   const int64_t from = at % cuts * cut;
                   const char* data = x.at(at / cuts % rows, from);
                   int64_t product = at / cuts / rows;
                   for (int i = rank - 1; i >= 0; product /= shape[i--]) data += product % shape[i] * strides[i];
                   mine = std::min(mine, least_magnitude(data, x.cs, std::min(cut, cols - from)));
                 }
                 uint16_t seen = least.load(std::memory_order_relaxed);
                 while (mine < seen && !least.compare_exchange_weak(seen, mine, std::memory_order_relaxed)) {
                 }
               });
  const uint16_t found = least.load(std::memory_order_relaxed);
  return found == kNoValue ? 255 : (found + 1) >> 7;
}

}  // namespace

bool run_in_place(const Gemm& g, void* workspace) {
  if (g.a.element != Element::BF16 || !InPlace::takes(g)) return false;
  InPlace(g, workspace).run();
  return true;
}

void run_bf16(const Gemm& g, void* workspace) {
  if (run_in_place(g, workspace)) return;
  if (!keeps_subnormals(least_exponent(g, g.a, g.m, g.k), least_exponent(g, g.b, g.k, g.n)))
    return run_packed(g, workspace);
  Packed<Bf16Pairs>(g, workspace).run();
}

#else

bool run_in_place(const Gemm&, void*) { return false; }
void run_bf16(const Gemm& g, void* workspace) { run_packed(g, workspace); }

#endif

}  // namespace baracuda::matmul
