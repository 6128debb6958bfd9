// The quantizing epilogue on GPUs, as coded_rows.h is the CPU's: teams of threads that compute rows of values write
// their codes, a thread four neighbours at a time. Values are computed again for their codes where scales are to be
// found, from what the caches hold by then.
//
//   struct Source {
//     // Of the row, f32, from i on; what lies at `end` and behind it is anything.
//     BCU_METHOD void values(BCU_CONSTANT P& p, int64_t i, int64_t end, BCU_THREAD float* v) const;
//     // What else is written of the same four, by the thread that codes them.
//     BCU_METHOD void done(BCU_CONSTANT P& p, int64_t i, int64_t end) const;
//   };
#pragma once
#include "ops/quant/simt_scaled.h"
#include "simt/pack.h"

namespace baracuda::quant {

enum : int { kFour = 4 };  // neighbours that a thread takes

// Of parameters that have it as `codes`, beside a space `s` of rows along the last dimension.
struct CodedFrame {
  BCU_GLOBAL void* given;  // one scale for all, or null
  int64_t group;           // values that share a scale; 0: a row
  int64_t scale_stride;    // from group to group
  float least, most;
  int32_t packed;  // 1: four values lie together in every tensor that has rows, at multiples of their size
};

template <class T>
BCU_DEVICE void load_run(BCU_GLOBAL const void* data, int64_t at, BCU_THREAD float* v) {
  simt::Run<T, kFour> run = *(BCU_GLOBAL const simt::Run<T, kFour>*)((BCU_GLOBAL const T*)data + at);
  BCU_UNROLL for (int j = 0; j < kFour; ++j) v[j] = simt::Stored<T>::load(run.v[j]);
}
template <class T>
BCU_DEVICE void store_run(BCU_GLOBAL void* data, int64_t at, BCU_THREAD const float* v) {
  simt::Run<T, kFour> run;
  BCU_UNROLL for (int j = 0; j < kFour; ++j) run.v[j] = simt::Stored<T>::store(v[j]);
  *(BCU_GLOBAL simt::Run<T, kFour>*)((BCU_GLOBAL T*)data + at) = run;
}
// Values i to i + 3 of a row of tensor k, which begins at `row`; zeros from `end` on.
template <class P>
BCU_DEVICE void load_four(BCU_CONSTANT P& p, int k, int64_t row, int64_t i, int64_t end, BCU_THREAD float* v) {
  int32_t element = p.s.element[k];
  if (p.codes.packed) {
    if (element == simt::kF16) return load_run<simt::f16>(p.s.data[k], row + i, v);
    if (element == simt::kBF16) return load_run<simt::bf16>(p.s.data[k], row + i, v);
    return load_run<float>(p.s.data[k], row + i, v);
  }
  BCU_UNROLL for (int j = 0; j < kFour; ++j) {
    int64_t at = row + simt::position_offset(p.s, k, i + j);
    v[j] = i + j < end ? simt::load_element<float>(p.s.data[k], element, at) : 0.0f;
  }
}
template <class P>
BCU_DEVICE void store_four(BCU_CONSTANT P& p, int k, int64_t row, int64_t i, int64_t end, BCU_THREAD const float* v) {
  int32_t element = p.s.element[k];
  if (p.codes.packed) {
    if (element == simt::kF16) return store_run<simt::f16>(p.s.data[k], row + i, v);
    if (element == simt::kBF16) return store_run<simt::bf16>(p.s.data[k], row + i, v);
    return store_run<float>(p.s.data[k], row + i, v);
  }
  BCU_UNROLL for (int j = 0; j < kFour; ++j) {
    if (i + j < end) simt::store_element(p.s.data[k], element, row + simt::position_offset(p.s, k, i + j), v[j]);
  }
}

BCU_DEVICE float size_of_value(float v) { return v < 0.0f ? -v : v; }

template <class Code, int kY, int kScale, class P, class Source>
struct CodedRow {
  // Codes of the fours from `from` on, `step` apart, before `end`.
  BCU_DEVICE void put(BCU_CONSTANT P& p, BCU_THREAD const Source& source, int64_t y, BCU_THREAD const Scaling& s,
                      int64_t from, int64_t end, int64_t step) {
    for (int64_t i = from; i < end; i += step) {
      float v[kFour];
      source.values(p, i, end, v);
      BCU_UNROLL for (int j = 0; j < kFour; ++j) v[j] = Code::of(v[j], s, p.codes.least, p.codes.most);
      source.done(p, i, end);
      if (p.codes.packed) {
        simt::Word word;
        word.w[0] = 0u;
        BCU_UNROLL for (int j = 0; j < kFour; ++j) word.w[0] |= (uint32_t(int32_t(v[j])) & 255u) << (8 * j);
        *(BCU_GLOBAL simt::Word*)((BCU_GLOBAL uint8_t*)p.s.data[kY] + y + i) = word;
        continue;
      }
      BCU_UNROLL for (int j = 0; j < kFour; ++j) {
        if (i + j < end)
          simt::store_element(p.s.data[kY], p.s.element[kY], y + simt::position_offset(p.s, kY, i + j), v[j]);
      }
    }
  }
  BCU_DEVICE float largest(BCU_CONSTANT P& p, BCU_THREAD const Source& source, int64_t from, int64_t end,
                           int64_t step) {
    float most = 0.0f;
    for (int64_t i = from; i < end; i += step) {
      float v[kFour];
      source.values(p, i, end, v);
      BCU_UNROLL for (int j = 0; j < kFour; ++j) most =
          i + j < end ? simt::Larger::of(most, size_of_value(v[j])) : most;
    }
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
    int64_t first = int64_t(team.rank) * kFour, step = int64_t(team.size) * kFour;
    Scaling s;
    if (p.codes.given) {
      s.scale = ((BCU_GLOBAL const float*)p.codes.given)[0], s.zero = 0.0f;
      put(p, source, y, s, first, length, step);
    } else if (group == 0) {
      float most = largest(p, source, first, length, step);
      most = simt::team_reduce<simt::Larger>(ctx, team, most, 0.0f, shared);
      s = scaling_of(-most, most, p.codes.least, p.codes.most, true);
      if (row < p.s.rows && team.rank == 0u) put_scale(p, row, 0, s.scale);
      put(p, source, y, s, first, length, step);
    } else {  // a warp for each group
      int64_t lane = team.rank % 32u;
      for (int64_t g = team.rank / 32u; g * group < length; g += team.size / 32u) {
        int64_t from = g * group + lane * kFour, end = (g + 1) * group;
        float most = simt::warp_reduce<simt::Larger>(ctx, largest(p, source, from, end, 32 * kFour));
        s = scaling_of(-most, most, p.codes.least, p.codes.most, true);
        if (lane == 0) put_scale(p, row, g, s.scale);
        put(p, source, y, s, from, end, 32 * kFour);
      }
    }
  }
};

}  // namespace baracuda::quant
