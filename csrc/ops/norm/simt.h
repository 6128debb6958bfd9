// Norms over trailing dimensions on GPUs, forward. Rows that fit the registers of a team are read once, longer ones
// again for each pass.
#pragma once
#include "simt/fold.h"
#include "simt/rows.h"

namespace baracuda::norm {

// kResidual is added before the norm, and the sum stored; kBehind is added to the result.
enum : int { kX, kResidual, kWeight, kBias, kY, kSum, kMean, kRstd, kBehind, kForwardTensors };

struct ForwardParams {
  simt::RowSpace<kForwardTensors> s;
  simt::Number eps;
  int64_t per_length;     // bits of 1 / length
  int64_t weight_offset;  // bits of what is added to weights
};

// The sum of a layer that adds, as it is stored.
template <class Rows>
BCU_DEVICE void add_residual(BCU_CONSTANT ForwardParams& p, int64_t row, int64_t at, int64_t i,
                             BCU_THREAD typename Rows::C* v) {
  typename Rows::C more[Rows::kPack];
  Rows::load(p.s, kResidual, at, i, typename Rows::C(0), more);
  BCU_UNROLL for (int j = 0; j < Rows::kPack; ++j) v[j] =
      simt::Stored<typename Rows::T>::load(simt::Stored<typename Rows::T>::store(v[j] + more[j]));
  Rows::store(p.s, kSum, row, i, v);
}

// The sum of squares of a pack's distances from the mean.
template <class Rows>
BCU_DEVICE typename Rows::C pack_squares(BCU_CONSTANT ForwardParams& p, int64_t i, BCU_THREAD const typename Rows::C* v,
                                         typename Rows::C mean) {
  typename Rows::C t[Rows::kPack];
  BCU_UNROLL for (int j = 0; j < Rows::kPack; ++j) {
    typename Rows::C d = v[j] - mean;
    t[j] = Rows::has(p.s, i + j) ? d * d : typename Rows::C(0);
  }
  return simt::pack_sum<Rows::kPack>(t);
}

template <class Rows>
BCU_DEVICE void put_scaled(BCU_CONSTANT ForwardParams& p, int64_t y, int64_t behind, int64_t i,
                           BCU_THREAD typename Rows::C* v, typename Rows::C mean, typename Rows::C rstd) {
  typename Rows::C t[Rows::kPack];
  BCU_UNROLL for (int j = 0; j < Rows::kPack; ++j) v[j] = (v[j] - mean) * rstd;
  if (p.s.data[kWeight]) {
    Rows::load(p.s, kWeight, 0, i, typename Rows::C(0), t);
    typename Rows::C offset = simt::from_bits<typename Rows::C>(p.weight_offset);
    BCU_UNROLL for (int j = 0; j < Rows::kPack; ++j) v[j] *= t[j] + offset;
  }
  if (p.s.data[kBias]) {
    Rows::load(p.s, kBias, 0, i, typename Rows::C(0), t);
    BCU_UNROLL for (int j = 0; j < Rows::kPack; ++j) v[j] += t[j];
  }
  if (p.s.data[kBehind]) {
    Rows::load(p.s, kBehind, behind, i, typename Rows::C(0), t);
    BCU_UNROLL for (int j = 0; j < Rows::kPack; ++j) v[j] += t[j];
  }
  Rows::store(p.s, kY, y, i, v);
}

template <class C>
BCU_DEVICE C rstd_of(BCU_CONSTANT ForwardParams& p, C squares) {
  return C(1) / math::sqrt(squares * simt::from_bits<C>(p.per_length) + simt::number<C>(p.eps));
}

template <class C>
BCU_DEVICE void put_statistics(BCU_CONSTANT ForwardParams& p, int64_t row, C mean, C rstd) {
  if (p.s.data[kMean]) simt::put_row_value(p.s, kMean, row, mean);
  if (p.s.data[kRstd]) simt::put_row_value(p.s, kRstd, row, rstd);
}

// kCenter: layer_norm. Rows are of whole packs.
template <class Rows, bool kCenter>
struct ForwardCached {
  using C = typename Rows::C;
  using Params = ForwardParams;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 64, kValues = 16, kPack = Rows::kPack, kPacks = kValues / kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index;
      uint32_t length = row < p.s.rows ? uint32_t(p.s.length) : 0u;
      int64_t x = 0, more = 0, total = 0;
      if (length) x = simt::row_offset(p.s, kX, row);
      if (length && p.s.data[kResidual])
        more = simt::row_offset(p.s, kResidual, row), total = simt::row_offset(p.s, kSum, row);
      C v[kPacks][kPack], mean = C(0), squares = C(0);
      BCU_UNROLL for (int q = 0; q < kPacks; ++q) {
        uint32_t i = (uint32_t(q) * team.size + team.rank) * kPack;
        if (i < length) {
          Rows::load(p.s, kX, x, i, C(0), v[q]);
          if (p.s.data[kResidual]) add_residual<Rows>(p, total, more, i, v[q]);
          if (kCenter) mean += simt::pack_sum<kPack>(v[q]);
        }
      }
      if (kCenter)
        mean = simt::team_reduce<simt::Add>(ctx, team, mean, C(0), shared) * simt::from_bits<C>(p.per_length);
      BCU_UNROLL for (int q = 0; q < kPacks; ++q) {
        uint32_t i = (uint32_t(q) * team.size + team.rank) * kPack;
        if (i < length) squares += pack_squares<Rows>(p, i, v[q], mean);
      }
      C rstd = rstd_of(p, simt::team_reduce<simt::Add>(ctx, team, squares, C(0), shared));
      if (row < p.s.rows && team.rank == 0u) put_statistics(p, row, mean, rstd);
      int64_t y = length ? simt::row_offset(p.s, kY, row) : 0;
      int64_t behind = length && p.s.data[kBehind] ? simt::row_offset(p.s, kBehind, row) : 0;
      BCU_UNROLL for (int q = 0; q < kPacks; ++q) {
        uint32_t i = (uint32_t(q) * team.size + team.rank) * kPack;
        if (i < length) put_scaled<Rows>(p, y, behind, i, v[q], mean, rstd);
      }
    }
  }
};

template <class Rows, bool kCenter>
struct ForwardLooped {
  using C = typename Rows::C;
  using Params = ForwardParams;
  enum : int { kThreads = 512, kBlocks = 1, kShared = 512, kPack = Rows::kPack };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* shared, BCU_CONSTANT Params& p) {
    simt::Team team = simt::team_of(ctx, p.s);
    int64_t begin = int64_t(team.rank) * kPack, step = int64_t(team.size) * kPack;
    const bool adds = p.s.data[kResidual] != nullptr;
    const int source = adds ? kSum : kX;
    for (int64_t base = team.first; base < p.s.rows; base += team.step) {
      int64_t row = base + team.index, length = row < p.s.rows ? p.s.length : 0;
      int64_t at = length ? simt::row_offset(p.s, source, row) : 0;
      C v[kPack], mean = C(0);
      if (adds && length) {  // a thread reads again only what it wrote itself
        int64_t x = simt::row_offset(p.s, kX, row), more = simt::row_offset(p.s, kResidual, row);
        for (int64_t i = begin; i < length; i += step) {
          Rows::load(p.s, kX, x, i, C(0), v);
          add_residual<Rows>(p, at, more, i, v);
        }
      }
      simt::LongSum<C> sum = simt::empty_sum<C>(), squares = simt::empty_sum<C>();
      if (kCenter) {
        for (int64_t i = begin; i < length; i += step) {
          Rows::load(p.s, source, at, i, C(0), v);
          simt::accumulate(sum, simt::pack_sum<kPack>(v));
        }
        mean = simt::team_reduce<simt::Add>(ctx, team, simt::value_of(sum), C(0), shared) *
               simt::from_bits<C>(p.per_length);
      }
      for (int64_t i = begin; i < length; i += step) {
        Rows::load(p.s, source, at, i, C(0), v);
        simt::accumulate(squares, pack_squares<Rows>(p, i, v, mean));
      }
      C rstd = rstd_of(p, simt::team_reduce<simt::Add>(ctx, team, simt::value_of(squares), C(0), shared));
      if (row < p.s.rows && team.rank == 0u) put_statistics(p, row, mean, rstd);
      int64_t y = length ? simt::row_offset(p.s, kY, row) : 0;
      int64_t behind = length && p.s.data[kBehind] ? simt::row_offset(p.s, kBehind, row) : 0;
      for (int64_t i = begin; i < length; i += step) {
        Rows::load(p.s, source, at, i, C(0), v);
        put_scaled<Rows>(p, y, behind, i, v, mean, rstd);
      }
    }
  }
};

}  // namespace baracuda::norm
