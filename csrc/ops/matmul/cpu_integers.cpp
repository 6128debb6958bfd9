// Products of integers and of 8-bit floats.
#include "ops/matmul/cpu.h"
#include "ops/matmul/packed.h"

namespace baracuda::matmul {

void run_whole(const Gemm& g, void* workspace) {
  if (size_of(g.d.element) == 8) {
    Packed<Plain<uint64_t>>(g, workspace).run();
  } else {
    Packed<Plain<uint32_t>>(g, workspace).run();
  }
}

void run_scaled(const Gemm& g, void* workspace) {
  if (g.a.element == Element::F8E4M3) return Packed<Plain<float>>(g, workspace).run();
#if BCU_LEVEL_PAIRS
  Packed<S16Pairs>(g, workspace).run();
#else
  Packed<Plain<uint32_t>>(g, workspace).run();
#endif
}

void run_vnni(const Gemm& g, void* workspace) {
#if BCU_LEVEL_QUADS
  Packed<S8Quads>(g, workspace).run();
#else
  run_scaled(g, workspace);
#endif
}

}  // namespace baracuda::matmul
