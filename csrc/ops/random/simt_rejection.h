// Gamma, beta, Poisson and binomial numbers on GPUs, by the elementwise driver.
#pragma once
#include "ops/random/rejection.h"
#include "ops/random/simt_discrete.h"

namespace baracuda::random {

template <class Draw>
struct Drawn {
  template <class C>
  BCU_DEVICE void apply(BCU_THREAD const C* in, BCU_THREAD C* out, BCU_CONSTANT DrawExtra& x, int64_t at) {
    for (int i = 0; i < Draw::kInputs; ++i) {
      bool unit = (Draw::kUnits >> i & 1) != 0;
      if (!takes(in[i], unit)) simt::raise_value(x.fault, x.row, i, at, in[i], unit ? simt::kUnit : simt::kNotNegative);
    }
    Tries t;
    t.seed = simt::number<uint64_t>(x.seed), t.counter = simt::number<uint64_t>(x.offset) + uint64_t(at);
    t.number = 0u, t.next = 0u;
    out[0] = Draw::of(in, t);
  }
};

}  // namespace baracuda::random
