// The quantizing epilogue on GPUs, as coded_rows.h is the CPU's: teams of threads that compute rows of values write
// their codes. Values are computed again for their codes where scales are to be found, from what the caches hold by
// then.
//
//   struct Source {
//     BCU_METHOD float value(BCU_CONSTANT P& p, int64_t i) const;  // of the row, f32
//     BCU_METHOD void done(BCU_CONSTANT P& p, int64_t i) const;    // what else is written, by the thread that codes it
//   };
#pragma once
#include "ops/quant/simt_scaled.h"

namespace baracuda::quant {

// Of parameters that have it as `codes`, beside a space `s` of rows along the last dimension.
struct CodedFrame {
  BCU_GLOBAL void* given;  // one scale for all, or null
  int64_t group;           // values that share a scale; 0: a row
  int64_t scale_stride;    // from group to group
  float least, most;
};

BCU_DEVICE float size_of_value(float v) { return v < 0.0f ? -v : v; }

template <class Code, int kY, int kScale, class P, class Source>
struct CodedRow {
  // Codes of values `from`, from + step, ... before `end`.
  BCU_DEVICE void put(BCU_CONSTANT P& p, BCU_THREAD const Source& source, int64_t y, BCU_THREAD const Scaling& s,
                      int64_t from, int64_t end, int64_t step) {
    for (int64_t i = from; i < end; i += step) {
      float code = Code::of(source.value(p, i), s, p.codes.least, p.codes.most);
      source.done(p, i);
      simt::store_element(p.s.data[kY], p.s.element[kY], y + simt::position_offset(p.s, kY, i), code);
    }
  }
  BCU_DEVICE float largest(BCU_CONSTANT P& p, BCU_THREAD const Source& source, int64_t from, int64_t end,
                           int64_t step) {
    float most = 0.0f;
    for (int64_t i = from; i < end; i += step) most = simt::Larger::of(most, size_of_value(source.value(p, i)));
    return most;
  }
  BCU_DEVICE void put_scale(BCU_CONSTANT P& p, int64_t row, int64_t group, float v) {
    int64_t at = simt::row_offset(p.s, kScale, row) + group * p.codes.scale_stride;
    ((BCU_GLOBAL float*)p.s.data[kScale])[at] = v;
  }
  // All threads of the block call this together; there may be no row for some.
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_THREAD const simt::Team& team, BCU_SHARED float* shared,
                      BCU_CONSTANT P& p, BCU_THREAD const Source& source, int64_t row) {
    int64_t length = row < p.s.rows ? p.s.length : 0;
    int64_t y = length > 0 ? simt::row_offset(p.s, kY, row) : 0, group = p.codes.group;
    Scaling s;
    if (p.codes.given) {
      s.scale = ((BCU_GLOBAL const float*)p.codes.given)[0], s.zero = 0.0f;
      put(p, source, y, s, team.rank, length, team.size);
    } else if (group == 0) {
      float most = largest(p, source, team.rank, length, team.size);
      most = simt::team_reduce<simt::Larger>(ctx, team, most, 0.0f, shared);
      s = scaling_of(-most, most, p.codes.least, p.codes.most, true);
      if (row < p.s.rows && team.rank == 0u) put_scale(p, row, 0, s.scale);
      put(p, source, y, s, team.rank, length, team.size);
    } else {  // a warp for each group
      int64_t lane = team.rank % 32u;
      for (int64_t g = team.rank / 32u; g * group < length; g += team.size / 32u) {
        int64_t from = g * group + lane, end = (g + 1) * group;
        float most = simt::warp_reduce<simt::Larger>(ctx, largest(p, source, from, end, 32));
        s = scaling_of(-most, most, p.codes.least, p.codes.most, true);
        if (lane == 0) put_scale(p, row, g, s.scale);
        put(p, source, y, s, from, end, 32);
      }
    }
  }
};

}  // namespace baracuda::quant
