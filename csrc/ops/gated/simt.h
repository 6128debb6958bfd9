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
  int64_t value_row, gate_row;

  BCU_METHOD void values(BCU_CONSTANT CodedParams& p, int64_t i, int64_t end, BCU_THREAD float* v) const {
    float g[quant::kFour];
    quant::load_four(p, kCodedValue, value_row, i, end, v);
    quant::load_four(p, kCodedGate, gate_row, i, end, g);
    BCU_UNROLL for (int j = 0; j < quant::kFour; ++j) v[j] = Product<Gate>::f(v[j], g[j]).v[0];
  }
  BCU_METHOD void done(BCU_CONSTANT CodedParams&, int64_t, int64_t) const {}
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
      source.value_row = there ? simt::row_offset(p.s, kCodedValue, row) : 0;
      source.gate_row = there ? simt::row_offset(p.s, kCodedGate, row) : 0;
      quant::CodedRow<Code, kCodedY, kCodedScale, Params, GatedSource<Gate>>::run(ctx, team, shared, p, source, row);
    }
  }
};

}  // namespace baracuda::gated
