// The functions of two numbers on GPUs: the elementwise driver applies those of math.h.
#pragma once
#include "ops/binary/math.h"
#include "simt/map.h"

namespace baracuda::binary {

// Where an integer divisor of zero is reported, and how its position follows from the output's.
struct DivisorCheck {
  BCU_GLOBAL simt::Fault* fault;
  int64_t row;
  int64_t shape[simt::kMaxDims], position[simt::kMaxDims];  // of the output; the divisor's positions as strides
  int32_t tensor, rank;
};

BCU_DEVICE void report(BCU_CONSTANT DivisorCheck& check, int64_t at) {
  int64_t position = 0;
  for (int d = check.rank - 1; d >= 0; --d) {
    position += at % check.shape[d] * check.position[d];
    at /= check.shape[d];
  }
  simt::raise_division(check.fault, check.row, check.tensor, position);
}

// a % b and its kin of integers.
template <class Op>
struct Checked {
  template <class C>
  BCU_DEVICE void apply(BCU_THREAD const C* in, BCU_THREAD C* out, BCU_CONSTANT DivisorCheck& check, int64_t at) {
    C divisor = in[1];
    if (divisor == C(0)) {
      report(check, at);
      divisor = C(1);
    }
    out[0] = Op::f(in[0], divisor);
  }
};

}  // namespace baracuda::binary
