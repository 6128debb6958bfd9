// Products of integers, and of 8-bit elements with scales, by the tiles of simt.h.
#pragma once
#include "core/f8.h"
#include "ops/matmul/simt.h"

namespace baracuda::matmul {

// Integers modulo 2^n, read as unsigned ones T and summed in S.
template <class T, class S>
struct Whole {};
template <class T, class S>
struct Factor<Whole<T, S>> {
  using In = T;
  using C = S;
  enum : int { kDepth = 256 / int(sizeof(S)) };  // slices of 64 bits fit the shared memory of Metal, too
  BCU_DEVICE C load(T v) { return C(v); }
};
template <class T, class S>
struct Ending<Whole<T, S>> {
  int64_t d, c;
  S alpha, beta;

  BCU_DEVICE Ending start(BCU_CONSTANT TiledParams& p, int64_t batch) {
    Ending e;
    e.d = Offsets::of(batch, p.batch_rank, p.batch_shape, p.ds.batch);
    e.c = Offsets::of(batch, p.batch_rank, p.batch_shape, p.cs.batch);
    e.alpha = S(simt::number<int64_t>(p.alpha)), e.beta = S(simt::number<int64_t>(p.beta));
    return e;
  }
  BCU_DEVICE void put(BCU_CONSTANT TiledParams& p, BCU_THREAD const Ending& e, int64_t i, int64_t j, S sum) {
    if (i < p.m && j < p.n) {
      S v = e.alpha * sum;
      if (p.c && e.beta != S(0)) v += e.beta * S(((BCU_GLOBAL const T*)p.c)[e.c + i * p.cs.row + j * p.cs.column]);
      if (p.bias) v += S(((BCU_GLOBAL const T*)p.bias)[i * p.bias_row + j * p.bias_column]);
      ((BCU_GLOBAL T*)p.d)[e.d + i * p.ds.row + j * p.ds.column] = T(v);
    }
  }
};

// 8-bit factors: In is int8_t, or uint8_t for f8e4m3.
template <class In, class Out>
struct Scaled {};
template <class Out>
struct Factor<Scaled<int8_t, Out>> {
  using In = int8_t;
  using C = uint32_t;  // two's complement
  enum : int { kDepth = 64 };
  BCU_DEVICE C load(int8_t v) { return C(int32_t(v)); }
};
template <class Out>
struct Factor<Scaled<uint8_t, Out>> {
  using In = uint8_t;
  using C = float;
  enum : int { kDepth = 64 };
  BCU_DEVICE C load(uint8_t v) { return F8<3>::decode(v); }
};

// What becomes of a scaled sum, as a float or a 32-bit integer.
template <class Out>
struct Result {
  BCU_DEVICE float from(uint32_t sum) { return float(int32_t(sum)); }
  BCU_DEVICE float from(float sum) { return sum; }
  BCU_DEVICE float added(float v, Out bias) { return v + simt::widen(bias); }
  BCU_DEVICE Out stored(int32_t activation, float v) { return simt::Stored<Out>::store(activate(activation, v)); }
};
template <>
struct Result<int32_t> {
  BCU_DEVICE uint32_t from(uint32_t sum) { return sum; }
  BCU_DEVICE uint32_t added(uint32_t v, int32_t bias) { return v + uint32_t(bias); }
  BCU_DEVICE int32_t stored(int32_t, uint32_t v) { return int32_t(v); }
};
template <class V>
BCU_DEVICE V scaled(V v, BCU_GLOBAL const float* scales, int64_t at) {
  return scales ? V(v * scales[at]) : v;
}
BCU_DEVICE uint32_t scaled(uint32_t v, BCU_GLOBAL const float*, int64_t) { return v; }

template <class In, class Out>
struct Ending<Scaled<In, Out>> {
  using R = Result<Out>;
  int64_t d, a, b;

  BCU_DEVICE Ending start(BCU_CONSTANT TiledParams& p, int64_t batch) {
    Ending e;
    e.d = Offsets::of(batch, p.batch_rank, p.batch_shape, p.ds.batch);
    e.a = Offsets::of(batch, p.batch_rank, p.batch_shape, p.scales_a.batch);
    e.b = Offsets::of(batch, p.batch_rank, p.batch_shape, p.scales_b.batch);
    return e;
  }
  template <class C>
  BCU_DEVICE void put(BCU_CONSTANT TiledParams& p, BCU_THREAD const Ending& e, int64_t i, int64_t j, C sum) {
    if (i < p.m && j < p.n) {
      auto v = scaled(R::from(sum), p.scale_a, e.a + i * p.scales_a.row + j * p.scales_a.column);
      v = scaled(v, p.scale_b, e.b + i * p.scales_b.row + j * p.scales_b.column);
      if (p.bias) v = R::added(v, ((BCU_GLOBAL const Out*)p.bias)[i * p.bias_row + j * p.bias_column]);
      ((BCU_GLOBAL Out*)p.d)[e.d + i * p.ds.row + j * p.ds.column] = R::stored(p.activation, v);
    }
  }
};

}  // namespace baracuda::matmul
