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

  BCU_METHOD float one(BCU_CONSTANT CodedNormParams& p, int k, int64_t row, int64_t i) const {
    return simt::load_element<float>(p.s.data[k], p.s.element[k], row + simt::position_offset(p.s, k, i));
  }
  BCU_METHOD float input(BCU_CONSTANT CodedNormParams& p, int64_t i) const {
    float v = one(p, kCodedX, x, i);
    return p.s.data[kCodedResidual] ? as_stored(p.s.element[kCodedX], v + one(p, kCodedResidual, residual, i)) : v;
  }
  BCU_METHOD float value(BCU_CONSTANT CodedNormParams& p, int64_t i) const {
    float v = (input(p, i) - mean) * rstd;
    if (p.s.data[kCodedWeight]) v *= one(p, kCodedWeight, 0, i) + p.weight_offset;
    return p.s.data[kCodedBias] ? v + one(p, kCodedBias, 0, i) : v;
  }
  BCU_METHOD void done(BCU_CONSTANT CodedNormParams& p, int64_t i) const {
    if (!p.s.data[kCodedSum]) return;
    int64_t at = sum + simt::position_offset(p.s, kCodedSum, i);
    simt::store_element(p.s.data[kCodedSum], p.s.element[kCodedSum], at, input(p, i));
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
      simt::LongSum<float> sum = simt::empty_sum<float>(), squares = simt::empty_sum<float>();
      if (kCenter) {
        for (int64_t i = team.rank; i < length; i += team.size) simt::accumulate(sum, source.input(p, i));
        source.mean = simt::team_reduce<simt::Add>(ctx, team, simt::value_of(sum), 0.0f, shared) * p.per_length;
      }
      for (int64_t i = team.rank; i < length; i += team.size) {
        float d = source.input(p, i) - source.mean;
        simt::accumulate(squares, d * d);
      }
      float total = simt::team_reduce<simt::Add>(ctx, team, simt::value_of(squares), 0.0f, shared);
      source.rstd = 1.0f / math::sqrt(total * p.per_length + simt::number<float>(p.eps));
      quant::CodedRow<Code, kCodedY, kCodedScale, Params, NormSource>::run(ctx, team, shared, p, source, row);
    }
  }
};

}  // namespace baracuda::norm
