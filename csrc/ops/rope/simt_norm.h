// rms_norm_rope on GPUs: a warp normalises a row and rotates it; it reads the row again for that, from the caches.
#pragma once
#include "ops/rope/simt.h"
#include "simt/fold.h"
#include "simt/reduce.h"
#include "simt/rows.h"

namespace baracuda::rope {

struct NormParams {
  // kAt: positions, or the row of the sequence where they are a number. kOut: y or dx.
  enum : int { kX, kOut, kDy, kRstd, kAt, kNumber, kTensors };
  simt::Space<kTensors> space;  // of rows
  BCU_GLOBAL const void* x;
  BCU_GLOBAL const void* dy;
  BCU_GLOBAL const void* weight;  // null: all 1
  BCU_GLOBAL void* out;
  BCU_GLOBAL void* rstd;  // null: not wanted
  BCU_GLOBAL const void* cos;
  BCU_GLOBAL const void* sin;
  BCU_GLOBAL const void* positions;  // null: start + row of the sequence
  BCU_GLOBAL void* partial;          // gradients of weights: [strip][column]
  simt::Number start, eps;
  int64_t x_column, dy_column, out_column, weight_column;
  int64_t cos_row, cos_column, sin_row, sin_column;
  int64_t columns, pairs, limit;      // limit: rows of the tables
  int64_t per;                        // rows of a strip
  int64_t per_column, weight_offset;  // bits of 1 / columns, and of what is added to weights
  BCU_GLOBAL simt::Fault* fault;
  int64_t row;
  int32_t interleaved, tensor;
  int32_t cos_element, sin_element, positions_element;
};

// One row of a call. A unit is a pair of columns, or behind them one column.
template <class T>
struct NormRow {
  using C = simt::ComputeOf<T>;
  using S = simt::Stored<T>;
  using Params = NormParams;

  BCU_DEVICE int64_t first(BCU_CONSTANT Params& p, int64_t unit) {
    return unit >= p.pairs ? unit + p.pairs : p.interleaved ? 2 * unit : unit;
  }
  BCU_DEVICE int64_t second(BCU_CONSTANT Params& p, int64_t unit) {
    return p.interleaved ? 2 * unit + 1 : unit + p.pairs;
  }
  BCU_DEVICE C x(BCU_CONSTANT Params& p, BCU_THREAD const int64_t* offset, int64_t i) {
    return S::load(((BCU_GLOBAL const T*)p.x)[offset[Params::kX] + i * p.x_column]);
  }
  BCU_DEVICE C dy(BCU_CONSTANT Params& p, BCU_THREAD const int64_t* offset, int64_t i) {
    return S::load(((BCU_GLOBAL const T*)p.dy)[offset[Params::kDy] + i * p.dy_column]);
  }
  BCU_DEVICE void put(BCU_CONSTANT Params& p, BCU_THREAD const int64_t* offset, int64_t i, C v) {
    ((BCU_GLOBAL T*)p.out)[offset[Params::kOut] + i * p.out_column] = S::store(v);
  }
  BCU_DEVICE C weight(BCU_CONSTANT Params& p, int64_t i) {
    if (!p.weight) return C(1);
    return S::load(((BCU_GLOBAL const T*)p.weight)[i * p.weight_column]) + simt::from_bits<C>(p.weight_offset);
  }
  BCU_DEVICE C cosine(BCU_CONSTANT Params& p, int64_t at, int64_t unit) {
    return simt::load_element<C>(p.cos, p.cos_element, at * p.cos_row + unit * p.cos_column);
  }
  BCU_DEVICE C sine(BCU_CONSTANT Params& p, int64_t at, int64_t unit) {
    return simt::load_element<C>(p.sin, p.sin_element, at * p.sin_row + unit * p.sin_column);
  }
  // A unit of dy, turned back.
  BCU_DEVICE void turned_back(BCU_CONSTANT Params& p, BCU_THREAD const int64_t* offset, int64_t at, int64_t unit,
                              BCU_THREAD C& a, BCU_THREAD C& b) {
    a = dy(p, offset, first(p, unit)), b = C(0);
    if (unit >= p.pairs) return;
    C u = a, v = dy(p, offset, second(p, unit)), c = cosine(p, at, unit), s = sine(p, at, unit);
    a = u * c + v * s;
    b = v * c - u * s;
  }
};

template <class T>
struct NormRotateForward {
  using Params = NormParams;
  using Row = NormRow<T>;
  using C = simt::ComputeOf<T>;
  enum : int { kThreads = 128, kShared = 0 };

  BCU_DEVICE void row(BCU_THREAD const simt::Context& ctx, BCU_CONSTANT Params& p, int64_t r) {
    int64_t offset[Params::kTensors];
    simt::locate(p.space, r, offset);
    int64_t at = position_of(p, offset);
    if (at < 0) return;
    C squares = C(0);
    for (int64_t i = ctx.lane(); i < p.columns; i += 32) {
      C v = Row::x(p, offset, i);
      squares += v * v;
    }
    squares = simt::warp_reduce<simt::Add>(ctx, squares);
    C rstd = C(1) / math::sqrt(squares * simt::from_bits<C>(p.per_column) + simt::number<C>(p.eps));
    if (p.rstd && ctx.lane() == 0u) ((BCU_GLOBAL C*)p.rstd)[offset[Params::kRstd]] = rstd;
    for (int64_t i = 2 * p.pairs + ctx.lane(); i < p.columns; i += 32)
      Row::put(p, offset, i, Row::x(p, offset, i) * rstd * Row::weight(p, i));
    for (int64_t unit = ctx.lane(); unit < p.pairs; unit += 32) {
      int64_t i = Row::first(p, unit);
      C a = Row::x(p, offset, i) * rstd * Row::weight(p, i);
      int64_t j = Row::second(p, unit);
      C b = Row::x(p, offset, j) * rstd * Row::weight(p, j);
      C c = Row::cosine(p, at, unit), s = Row::sine(p, at, unit);
      Row::put(p, offset, i, a * c - b * s);
      Row::put(p, offset, j, b * c + a * s);
    }
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.warps();
    for (int64_t r = int64_t(ctx.bid_x()) * ctx.warps() + ctx.warp(); r < p.space.count; r += step) row(ctx, p, r);
  }
};

template <class T>
struct NormRotateBack {
  using Params = NormParams;
  using Row = NormRow<T>;
  using C = simt::ComputeOf<T>;
  enum : int { kThreads = 128, kShared = 0 };

  BCU_DEVICE void row(BCU_THREAD const simt::Context& ctx, BCU_CONSTANT Params& p, int64_t r) {
    int64_t offset[Params::kTensors];
    simt::locate(p.space, r, offset);
    int64_t at = position_of(p, offset);
    if (at < 0) return;
    C rstd = ((BCU_GLOBAL const C*)p.rstd)[offset[Params::kRstd]], sum = C(0), a, b;
    for (int64_t unit = ctx.lane(); unit < p.columns - p.pairs; unit += 32) {
      int64_t i = Row::first(p, unit);
      Row::turned_back(p, offset, at, unit, a, b);
      sum += a * Row::weight(p, i) * Row::x(p, offset, i);
      if (unit >= p.pairs) continue;
      int64_t j = Row::second(p, unit);
      sum += b * Row::weight(p, j) * Row::x(p, offset, j);
    }
    sum = simt::warp_reduce<simt::Add>(ctx, sum);
    C slope = sum * simt::from_bits<C>(p.per_column) * rstd * rstd * rstd;
    for (int64_t unit = ctx.lane(); unit < p.columns - p.pairs; unit += 32) {
      int64_t i = Row::first(p, unit);
      Row::turned_back(p, offset, at, unit, a, b);
      C x = Row::x(p, offset, i);
      if (unit < p.pairs) {
        int64_t j = Row::second(p, unit);
        Row::put(p, offset, j, b * Row::weight(p, j) * rstd - Row::x(p, offset, j) * slope);
      }
      Row::put(p, offset, i, a * Row::weight(p, i) * rstd - x * slope);
    }
  }

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.warps();
    for (int64_t r = int64_t(ctx.bid_x()) * ctx.warps() + ctx.warp(); r < p.space.count; r += step) row(ctx, p, r);
  }
};

// The gradient of weights over a strip of rows (blocks along y): a unit for each thread.
template <class T>
struct NormRotateTerms {
  using Params = NormParams;
  using Row = NormRow<T>;
  using C = simt::ComputeOf<T>;
  enum : int { kThreads = 128, kShared = 0 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t unit = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(), strip = int64_t(ctx.bid_y());
    if (unit >= p.columns - p.pairs) return;
    int64_t i = Row::first(p, unit), j = unit < p.pairs ? Row::second(p, unit) : i;
    simt::LongSum<C> of_first = simt::empty_sum<C>(), of_second = simt::empty_sum<C>();
    int64_t begin = strip * p.per, end = begin + p.per < p.space.count ? begin + p.per : p.space.count;
    for (int64_t r = begin; r < end; ++r) {
      int64_t offset[Params::kTensors];
      simt::locate(p.space, r, offset);
      int64_t at = position_of(p, offset);
      if (at < 0) continue;
      C rstd = ((BCU_GLOBAL const C*)p.rstd)[offset[Params::kRstd]], a, b;
      Row::turned_back(p, offset, at, unit, a, b);
      simt::accumulate(of_first, a * (Row::x(p, offset, i) * rstd));
      simt::accumulate(of_second, b * (Row::x(p, offset, j) * rstd));
    }
    BCU_GLOBAL C* to = (BCU_GLOBAL C*)p.partial + strip * p.columns;
    to[i] = simt::value_of(of_first);
    if (j != i) to[j] = simt::value_of(of_second);
  }
};

}  // namespace baracuda::rope
