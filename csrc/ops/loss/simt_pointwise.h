// Elementwise losses on GPUs: the elementwise driver applies those of math.h, or adds them up.
#pragma once
#include "ops/loss/math.h"
#include "simt/map_sum.h"

namespace baracuda::loss {

// Where an input or target outside [0, 1] is reported. Positions are those of the shape that all have together.
struct UnitCheck {
  BCU_GLOBAL simt::Fault* fault;
  int64_t row;
};
template <class C>
BCU_DEVICE void check_unit(BCU_THREAD const C* in, BCU_CONSTANT UnitCheck& check, int64_t at) {
  for (int tensor = 0; tensor < 2; ++tensor) {
    if (!(in[tensor] >= C(0) && in[tensor] <= C(1)))
      simt::raise_value(check.fault, check.row, tensor, at, in[tensor], simt::kUnit);
  }
}
template <class C>
struct CheckedParts {
  BCU_GLOBAL simt::LongSum<C>* part;
  int32_t filled;
  UnitCheck check;
};

template <class Loss>
struct InputsOf {
  enum : int { kCount = 2 + Loss::kWeights + Loss::kNumbers };
};

// A loss that is added up.
template <class Loss>
struct Added {
  template <class C>
  BCU_DEVICE C term(BCU_THREAD const C* in, BCU_CONSTANT simt::SumParts<C>&, int64_t) {
    return simt::Call<InputsOf<Loss>::kCount>::template of<Loss>(in);
  }
};
// One of values in [0, 1].
template <class Loss>
struct Checked {
  template <class C>
  BCU_DEVICE C term(BCU_THREAD const C* in, BCU_CONSTANT CheckedParts<C>& extra, int64_t at) {
    check_unit(in, extra.check, at);
    return simt::Call<InputsOf<Loss>::kCount>::template of<Loss>(in);
  }
  template <class C>
  BCU_DEVICE void apply(BCU_THREAD const C* in, BCU_THREAD C* out, BCU_CONSTANT UnitCheck& check, int64_t at) {
    check_unit(in, check, at);
    out[0] = simt::Call<InputsOf<Loss>::kCount>::template of<Loss>(in);
  }
};

}  // namespace baracuda::loss
