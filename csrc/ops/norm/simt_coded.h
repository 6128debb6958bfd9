// Norms over the last dimension whose results are codes, on GPUs.
#pragma once
#include "ops/quant/simt_coded_rows.h"
#include "simt/rows.h"

namespace baracuda::norm {

enum : int { kCodedX, kCodedResidual, kCodedWeight, kCodedBias, kCodedY, kCodedScale, kCodedSum, kCodedTensors };

struct CodedNormParams {
  simt::RowSpace<kCodedTensors> s;
  quant::CodedFrame codes;
  simt::Number eps;
  float per_length, weight_offset;
};

// A value as it would be read again.
BCU_DEVICE float as_stored(int32_t element, float v) {
  if (element == simt::kF16) return simt::Stored<simt::f16>::load(simt::Stored<simt::f16>::store(v));
  if (element == simt::kBF16) return simt::Stored<simt::bf16>::load(simt::Stored<simt::bf16>::store(v));
  return v;
}

// Of a row, whose statistics come to be known. A sum is stored when nobody reads its terms any more: it may lie there.
struct NormSource {
  int64_t x, residual, sum;
  float mean, rstd;

  BCU_METHOD void inputs(BCU_CONSTANT CodedNormParams& p, int64_t i, int64_t end, BCU_THREAD float* v) const {
    quant::load_four(p, kCodedX, x, i, end, v);
    if (!p.s.data[kCodedResidual]) return;
    float more[quant::kFour];
    quant::load_four(p, kCodedResidual, residual, i, end, more);
    BCU_UNROLL for (int j = 0; j < quant::kFour; ++j) v[j] = as_stored(p.s.element[kCodedX], v[j] + more[j]);
  }
  BCU_METHOD void values(BCU_CONSTANT CodedNormParams& p, int64_t i, int64_t end, BCU_THREAD float* v) const {
    float more[quant::kFour];
    inputs(p, i, end, v);
    BCU_UNROLL for (int j = 0; j < quant::kFour; ++j) v[j] = (v[j] - mean) * rstd;
    if (p.s.data[kCodedWeight]) {
      quant::load_four(p, kCodedWeight, 0, i, end, more);
      BCU_UNROLL for (int j = 0; j < quant::kFour; ++j) v[j] *= more[j] + p.weight_offset;
    }
    if (p.s.data[kCodedBias]) {
      quant::load_four(p, kCodedBias, 0, i, end, more);
      BCU_UNROLL for (int j = 0; j < quant::kFour; ++j) v[j] += more[j];
    }
  }
  BCU_METHOD void done(BCU_CONSTANT CodedNormParams& p, int64_t i, int64_t end) const {
    if (!p.s.data[kCodedSum]) return;
    float v[quant::kFour];
    inputs(p, i, end, v);
    quant::store_four(p, kCodedSum, sum, i, end, v);
  }
  // Adds this thread's terms up: of values, or of squares of their distances from the mean.
  BCU_METHOD float add(BCU_CONSTANT CodedNormParams& p, BCU_THREAD const simt::Team& team, int64_t length,
                       bool squares) const {
    simt::LongSum<float> total = simt::empty_sum<float>();
    for (int64_t i = int64_t(team.rank) * quant::kFour; i < length; i += int64_t(team.size) * quant::kFour) {
      float v[quant::kFour];
      inputs(p, i, length, v);
      BCU_UNROLL for (int j = 0; j < quant::kFour; ++j) {
        float d = v[j] - mean;
        if (i + j < length) simt::accumulate(total, squares ? d * d : v[j]);
      }
    }
    return simt::value_of(total);
  }
};

template <class Code, bool kCenter>
struct CodedForward {
  using Params = CodedNormParams;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 64 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index, length = row < p.s.rows ? p.s.length : 0;
      NormSource source;
      source.x = length > 0 ? simt::row_offset(p.s, kCodedX, row) : 0;
      source.residual = length > 0 && p.s.data[kCodedResidual] ? simt::row_offset(p.s, kCodedResidual, row) : 0;
      source.sum = length > 0 && p.s.data[kCodedSum] ? simt::row_offset(p.s, kCodedSum, row) : 0;
      source.mean = 0.0f;
      if (kCenter)
        source.mean =
            simt::team_reduce<simt::Add>(ctx, team, source.add(p, team, length, false), 0.0f, shared) * p.per_length;
      float total = simt::team_reduce<simt::Add>(ctx, team, source.add(p, team, length, true), 0.0f, shared);
      source.rstd = 1.0f / math::sqrt(total * p.per_length + simt::number<float>(p.eps));
      quant::CodedRow<Code, kCodedY, kCodedScale, Params, NormSource>::run(ctx, team, shared, p, source, row);
    }
  }
};

}  // namespace baracuda::norm
