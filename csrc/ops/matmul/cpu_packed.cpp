// The packed matmul's instances: f32 and f64, and half elements converted to f32 while they are packed.
#include "ops/matmul/cpu.h"
#include "ops/matmul/packed.h"

namespace baracuda::matmul {

void run_packed(const Gemm& g, void* workspace) {
  if (g.d.element == Element::F64) {
    Packed<Plain<double>>(g, workspace).run();
  } else {
    Packed<Plain<float>>(g, workspace).run();
  }
}

}  // namespace baracuda::matmul
