// Running sums and products on GPUs: a block goes along a line in tiles, or, where neighbours in memory belong to
// different lines, each thread along one of its own.
#pragma once
#include "simt/rows.h"

namespace baracuda::scan {

struct ScanParams {
  simt::RowSpace<2> s;
};

// A running value; of floats with what rounding took from it.
template <bool kProduct, class C>
struct Total {
  C value;
  BCU_DEVICE Total start() {
    Total t;
    t.value = C(kProduct ? 1 : 0);
    return t;
  }
  BCU_DEVICE C joined(BCU_THREAD const Total& t, C x) { return kProduct ? t.value * x : t.value + x; }
  BCU_DEVICE void add(BCU_THREAD Total& t, C x) { t.value = joined(t, x); }
};
#define BCU_COMPENSATED_TOTAL(C)                                                         \
  template <>                                                                            \
  struct Total<false, C> {                                                               \
    simt::LongSum<C> sum;                                                                \
    BCU_DEVICE Total start() {                                                           \
      Total t;                                                                           \
      t.sum = simt::empty_sum<C>();                                                      \
      return t;                                                                          \
    }                                                                                    \
    BCU_DEVICE C joined(BCU_THREAD const Total& t, C x) {                                \
      return t.sum.error == t.sum.error ? t.sum.sum + (t.sum.error + x) : t.sum.sum + x; \
    }                                                                                    \
    BCU_DEVICE void add(BCU_THREAD Total& t, C x) { simt::accumulate(t.sum, x); }        \
  };
BCU_COMPENSATED_TOTAL(float)
#if BCU_HAS_F64
BCU_COMPENSATED_TOTAL(double)
#endif
#undef BCU_COMPENSATED_TOTAL

template <bool kProduct, class C>
BCU_DEVICE C combine(C a, C b) {
  return kProduct ? a * b : a + b;
}

template <bool kProduct, class Compute>
struct Lines {
  using C = Compute;
  using Params = ScanParams;
  enum : int { kThreads = 256, kBlocks = 1, kShared = 512, kEach = 4, kTile = kThreads * kEach };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float* memory, BCU_CONSTANT Params& p) {
    BCU_SHARED C* shared = (BCU_SHARED C*)memory;
    C neutral = C(kProduct ? 1 : 0);
    for (int64_t row = ctx.bid_x(); row < p.s.rows; row += ctx.gdim_x()) {
      int64_t x = simt::row_offset(p.s, 0, row), y = simt::row_offset(p.s, 1, row);
      Total<kProduct, C> carry = Total<kProduct, C>::start();
      for (int64_t base = 0; base < p.s.length; base += kTile) {
        int64_t first = base + int64_t(ctx.tid()) * kEach;
        C v[kEach];
        BCU_UNROLL for (int j = 0; j < kEach; ++j) {
          int64_t at = x + simt::position_offset(p.s, 0, first + j);
          v[j] = first + j < p.s.length ? simt::load_element<C>(p.s.data[0], p.s.element[0], at) : neutral;
          if (j > 0) v[j] = combine<kProduct>(v[j - 1], v[j]);
        }
        C total = v[kEach - 1];
        shared[ctx.tid()] = total;
        simt::barrier(ctx);
        BCU_NO_UNROLL for (uint32_t w = 1; w < kThreads; w *= 2) {
          C before = ctx.tid() >= w ? shared[ctx.tid() - w] : neutral;
          simt::barrier(ctx);
          total = combine<kProduct>(before, total);
          shared[ctx.tid()] = total;
          simt::barrier(ctx);
        }
        C before = ctx.tid() > 0u ? shared[ctx.tid() - 1u] : neutral, all = shared[kThreads - 1];
        simt::barrier(ctx);
        BCU_UNROLL for (int j = 0; j < kEach; ++j) {
          C out = Total<kProduct, C>::joined(carry, combine<kProduct>(before, v[j]));
          int64_t at = y + simt::position_offset(p.s, 1, first + j);
          if (first + j < p.s.length) simt::store_element(p.s.data[1], p.s.element[1], at, out);
        }
        Total<kProduct, C>::add(carry, all);
      }
    }
  }
};

template <bool kProduct, class Compute>
struct Columns {
  using C = Compute;
  using Params = ScanParams;
  enum : int { kThreads = 128, kBlocks = 1, kShared = 0 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t row = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); row < p.s.rows; row += step) {
      int64_t x = simt::row_offset(p.s, 0, row), y = simt::row_offset(p.s, 1, row);
      Total<kProduct, C> total = Total<kProduct, C>::start();
      for (int64_t i = 0; i < p.s.length; ++i) {
        C v = simt::load_element<C>(p.s.data[0], p.s.element[0], x + simt::position_offset(p.s, 0, i));
        Total<kProduct, C>::add(total, v);
        C out = Total<kProduct, C>::joined(total, C(kProduct ? 1 : 0));
        simt::store_element(p.s.data[1], p.s.element[1], y + simt::position_offset(p.s, 1, i), out);
      }
    }
  }
};

struct ProductGradientParams {
  simt::RowSpace<4> s;  // dy, x, y, dx
};

// The gradient of a running product without dividing by zero: see cpu.cpp. One thread for a line.
template <class Compute>
struct ProductGradient {
  using C = Compute;
  using Params = ProductGradientParams;
  enum : int { kThreads = 128, kBlocks = 1, kShared = 0 };

  BCU_DEVICE C value(BCU_CONSTANT Params& p, int k, int64_t row, int64_t i) {
    return simt::load_element<C>(p.s.data[k], p.s.element[k], row + simt::position_offset(p.s, k, i));
  }
  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim();
    for (int64_t row = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); row < p.s.rows; row += step) {
      int64_t dy = simt::row_offset(p.s, 0, row), x = simt::row_offset(p.s, 1, row);
      int64_t y = simt::row_offset(p.s, 2, row), dx = simt::row_offset(p.s, 3, row), zero = 0;
      while (zero < p.s.length && value(p, 1, x, zero) != C(0)) ++zero;
      simt::LongSum<C> sum = simt::empty_sum<C>();
      for (int64_t i = zero - 1; i >= 0; --i) {
        simt::accumulate(sum, value(p, 0, dy, i) * value(p, 2, y, i));
        put(p, dx, i, simt::value_of(sum) / value(p, 1, x, i));
      }
      sum = simt::empty_sum<C>();
      C others = zero > 0 && zero < p.s.length ? value(p, 2, y, zero - 1) : C(1);
      for (int64_t i = zero; i < p.s.length; ++i) {
        if (i > zero) others *= value(p, 1, x, i);
        if (others != C(0)) simt::accumulate(sum, value(p, 0, dy, i) * others);
        if (i > zero) put(p, dx, i, C(0));
      }
      if (zero < p.s.length) put(p, dx, zero, simt::value_of(sum));
    }
  }
  BCU_DEVICE void put(BCU_CONSTANT Params& p, int64_t row, int64_t i, C v) {
    simt::store_element(p.s.data[3], p.s.element[3], row + simt::position_offset(p.s, 3, i), v);
  }
};

}  // namespace baracuda::scan
