// The gated activations on GPUs: the elementwise driver applies the functions of math.h; their codes are written by
// teams.
#pragma once
#include "ops/gated/math.h"
#include "ops/quant/simt_coded_rows.h"
#include "simt/map.h"

namespace baracuda::gated {

enum : int { kCodedValue, kCodedGate, kCodedY, kCodedScale, kCodedTensors };

struct CodedParams {
  simt::RowSpace<kCodedTensors> s;
  quant::CodedFrame codes;
};

template <class Gate>
struct GatedSource {
  int64_t values, gates;

  BCU_METHOD float one(BCU_CONSTANT CodedParams& p, int k, int64_t row, int64_t i) const {
    return simt::load_element<float>(p.s.data[k], p.s.element[k], row + simt::position_offset(p.s, k, i));
  }
  BCU_METHOD float value(BCU_CONSTANT CodedParams& p, int64_t i) const {
    return Product<Gate>::f(one(p, kCodedValue, values, i), one(p, kCodedGate, gates, i)).v[0];
  }
  BCU_METHOD void done(BCU_CONSTANT CodedParams&, int64_t) const {}
};

template <class Gate, class Code>
struct CodedForward {
  using Params = CodedParams;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 64 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index;
      bool there = row < p.s.rows && p.s.length > 0;
      GatedSource<Gate> source;
      source.values = there ? simt::row_offset(p.s, kCodedValue, row) : 0;
      source.gates = there ? simt::row_offset(p.s, kCodedGate, row) : 0;
      quant::CodedRow<Code, kCodedY, kCodedScale, Params, GatedSource<Gate>>::run(ctx, team, shared, p, source, row);
    }
  }
};

}  // namespace baracuda::gated
