// The tables of the usual rotary embedding on GPUs.
#pragma once
#include "baracuda/math/math.h"
#include "simt/simt.h"

namespace baracuda::rope {

struct TableParams {
  BCU_GLOBAL void* cos;
  BCU_GLOBAL void* sin;
  int64_t rows, pairs;
  int64_t cos_row, cos_column, sin_row, sin_column;
  simt::Number base;
  float base_rest;  // what base has beyond a float
  int32_t cos_element, sin_element;
};

#if BCU_HAS_F64

// The angle in f64: a float's would be off by more than 1e-3 at position 30000.
struct Turn {
  double angle;

  BCU_DEVICE Turn of(BCU_CONSTANT TableParams& p, int64_t row, int64_t column) {
    Turn t;
    t.angle = double(row) * math::pow(simt::number<double>(p.base), -double(column) / double(p.pairs));
    return t;
  }
  BCU_METHOD double cos() const { return math::cos(angle); }
  BCU_METHOD double sin() const { return math::sin(angle); }
};

#else

using Pair = math::detail::Pair<float>;

BCU_DEVICE Pair add(Pair a, Pair b) {
  Pair s = math::detail::two_sum(a.hi, b.hi);
  return math::detail::fast_two_sum(s.hi, s.lo + (a.lo + b.lo));
}
BCU_DEVICE Pair minus(Pair a) {
  Pair m = {-a.hi, -a.lo};
  return m;
}
// An integer of up to 48 bits.
BCU_DEVICE Pair pair_of(int64_t n) {
  Pair p;
  p.hi = float(n);
  p.lo = float(n - int64_t(p.hi));
  return p;
}

// 2^x to 2^-44 of it, where it is a normal number.
BCU_DEVICE Pair exp2_of(Pair x) {
  const Pair kLn2 = {0.693147182f, -1.90465432e-09f};
  float n = math::rint(x.hi);
  n = n < -126.0f ? -126.0f : n > 127.0f ? 127.0f : n;
  Pair t = math::detail::mul(math::detail::two_sum(x.hi - n, x.lo), kLn2);
  // Taylor's series from its small end; a float is enough for the terms from t^8 / 8! on.
  Pair sum = {1.0f, 0.0f};
  for (int k = 13; k >= 8; --k) sum.hi = 1.0f + sum.hi * t.hi / float(k);
  for (int k = 7; k >= 1; --k) {
    Pair divisor = {float(k), 0.0f}, one = {1.0f, 0.0f};
    sum = add(one, math::detail::divide(math::detail::mul(sum, t), divisor));
  }
  float scale = math::detail::pow2<float>(int32_t(n));
  Pair y = {sum.hi * scale, sum.lo * scale};
  return y;
}

// log2(x) to 2^-44, by a step of Newton's from a float's.
BCU_DEVICE Pair log2_of(Pair x) {
  const Pair kPerLn2 = {1.44269502f, 1.92596297e-08f};
  Pair first = {math::log2(x.hi), 0.0f}, minus_one = {-1.0f, 0.0f};
  Pair rest = add(math::detail::mul(x, exp2_of(minus(first))), minus_one);  // log(1 + rest) is left
  rest.lo -= 0.5f * rest.hi * rest.hi;
  return add(first, math::detail::mul(rest, kPerLn2));
}

BCU_DEVICE Pair base_of(BCU_CONSTANT TableParams& p) {
  bool whole = p.base.data && p.base.element >= simt::kBool && p.base.element <= simt::kI64;
  Pair base = {simt::number<float>(p.base), p.base_rest};
  if (whole) base = pair_of(simt::load_element<int64_t>(p.base.data, p.base.element, 0));
  return base;
}

// The angle as a fraction of a turn, in pairs of floats: off by at most 2^-46 of itself.
struct Turn {
  Pair angle;  // of the quarter, in [-pi/4, pi/4]
  int32_t quarter;

  BCU_DEVICE Turn of(BCU_CONSTANT TableParams& p, int64_t row, int64_t column) {
    const Pair kLog2TwoPi = {2.65149617f, -4.24789768e-08f}, kTwoPi = {6.28318548f, -1.74845553e-07f};
    Pair exponent = {0.0f, 0.0f};
    if (column > 0) {
      exponent = math::detail::mul(math::detail::divide(pair_of(column), pair_of(p.pairs)), log2_of(base_of(p)));
    }
    Pair turns = math::detail::mul(pair_of(row), exp2_of(minus(add(exponent, kLog2TwoPi))));
    Pair part = math::detail::two_sum(turns.hi - math::rint(turns.hi), turns.lo);
    part.hi -= math::rint(part.hi);
    float quarters = math::rint(4.0f * part.hi);
    Turn t;
    t.quarter = int32_t(quarters) & 3;
    t.angle = math::detail::mul(math::detail::two_sum(part.hi - 0.25f * quarters, part.lo), kTwoPi);
    return t;
  }
  BCU_METHOD float near_zero_cos() const { return math::cos(angle.hi) - math::sin(angle.hi) * angle.lo; }
  BCU_METHOD float near_zero_sin() const { return math::sin(angle.hi) + math::cos(angle.hi) * angle.lo; }
  BCU_METHOD float cos() const {
    float v = quarter % 2 == 0 ? near_zero_cos() : near_zero_sin();
    return quarter == 1 || quarter == 2 ? -v : v;
  }
  BCU_METHOD float sin() const {
    float v = quarter % 2 == 0 ? near_zero_sin() : near_zero_cos();
    return quarter >= 2 ? -v : v;
  }
};

#endif

struct MakeTable {
  using Params = TableParams;
  enum : int { kThreads = 256, kShared = 0 };

  BCU_DEVICE void run(BCU_THREAD const simt::Context& ctx, BCU_SHARED float*, BCU_CONSTANT Params& p) {
    int64_t step = int64_t(ctx.gdim_x()) * ctx.bdim(), count = p.rows * p.pairs;
    for (int64_t i = int64_t(ctx.bid_x()) * ctx.bdim() + ctx.tid(); i < count; i += step) {
      int64_t row = i / p.pairs, column = i - row * p.pairs;
      Turn turn = Turn::of(p, row, column);
      simt::store_element(p.cos, p.cos_element, row * p.cos_row + column * p.cos_column, turn.cos());
      simt::store_element(p.sin, p.sin_element, row * p.sin_row + column * p.sin_column, turn.sin());
    }
  }
};

}  // namespace baracuda::rope
