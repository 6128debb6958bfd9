// Codes with scales on GPUs: maps over elements, and teams of threads that find the scales of their rows.
#pragma once
#include "ops/quant/affine.h"
#include "simt/map.h"
#include "simt/rows.h"

namespace baracuda::simt {

// Codes are stored as any element.
template <>
struct Stores<quant::Coded> {
  enum : int { kAny = 1 };
};
template <int kMantissa>
struct Stores<quant::CodedF8<kMantissa>> {
  enum : int { kAny = 1 };
};

}  // namespace baracuda::simt

namespace baracuda::quant {

struct DynamicParams {
  simt::RowSpace<4> s;  // x, y, scale, zero point
  float least, most;
  int32_t symmetric;
};

// The code of a value whose scale has been found.
struct WholeCode {
  BCU_DEVICE float of(float x, BCU_THREAD const Scaling& s, float least, float most) {
    return Coded::f(x, s.scale, s.zero, least, most);
  }
};
template <int kMantissa>
struct EightCode {
  BCU_DEVICE float of(float x, BCU_THREAD const Scaling& s, float, float) {
    return CodedF8<kMantissa>::f(x, s.scale, 1.0f);
  }
};

template <class Code>
struct DynamicRows {
  using Params = DynamicParams;
  enum : int { kThreads = 256, kBlocks = 1, kShared = 256 };

  BCU_DEVICE float value(BCU_CONSTANT Params& p, int64_t x, int64_t i) {
    return simt::load_element<float>(p.s.data[0], p.s.element[0], x + simt::position_offset(p.s, 0, i));
  }
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index, length = row < p.s.rows ? p.s.length : 0;
      int64_t x = length > 0 ? simt::row_offset(p.s, 0, row) : 0, y = length > 0 ? simt::row_offset(p.s, 1, row) : 0;
      float low = 0.0f, high = 0.0f;  // zero has a code in any case
      for (int64_t i = team.rank; i < length; i += team.size) {
        float v = value(p, x, i);
        low = simt::Smaller::of(low, v), high = simt::Larger::of(high, v);
      }
      low = simt::team_reduce<simt::Smaller>(ctx, team, low, 0.0f, shared);
      high = simt::team_reduce<simt::Larger>(ctx, team, high, 0.0f, shared);
      Scaling s = scaling_of(low, high, p.least, p.most, p.symmetric != 0);
      if (row < p.s.rows && team.rank == 0u) {
        simt::put_row_value(p.s, 2, row, s.scale);
        if (p.s.data[3]) simt::put_row_value(p.s, 3, row, s.zero);
      }
      for (int64_t i = team.rank; i < length; i += team.size) {
        float code = Code::of(value(p, x, i), s, p.least, p.most);
        simt::store_element(p.s.data[1], p.s.element[1], y + simt::position_offset(p.s, 1, i), code);
      }
    }
  }
};

}  // namespace baracuda::quant
