// gelu of many bf16: four vectors step by step, because a chain of operations on one of them keeps the processor
// waiting. Rounded to bf16 it is math::gelu in float, which a test compares for every one of the 65536 numbers.
#include <cstring>

#include "baracuda/math/activation.h"
#include "host/halves.h"
#include "ops/unary/bf16.h"

#if BCU_LEVEL_BF16
namespace baracuda::unary {
namespace {

using level::Floats;
using level::Words;

constexpr int kAtOnce = 8;
constexpr int64_t kLanes = level::kVectorBytes / sizeof(float), kBlock = kAtOnce * kLanes;
typedef uint16_t Halves __attribute__((vector_size(level::kVectorBytes)));

struct Several {
  Floats v[kAtOnce];
};

// Vectors of the halves at even places and of those at odd ones, by turns.
[[gnu::always_inline]] inline Several load(const uint16_t* h) {
  Several x;
#pragma GCC unroll 8
  for (int k = 0; k < kAtOnce; k += 2) {
    Words pairs;
    std::memcpy(&pairs, h + k * kLanes, sizeof pairs);
    x.v[k] = (Floats)(pairs << 16);
    x.v[k + 1] = (Floats)(pairs & 0xffff0000u);
  }
  return x;
}

// p x + c
[[gnu::always_inline]] inline Several step(Several p, const Several& x, float c) {
#pragma GCC unroll 8
  for (int k = 0; k < kAtOnce; ++k) p.v[k] = p.v[k] * x.v[k] + c;
  return p;
}
template <class... C>
[[gnu::always_inline]] inline Several polynomial(const Several& x, float highest, C... others) {
  Several p;
#pragma GCC unroll 8
  for (int k = 0; k < kAtOnce; ++k) p.v[k] = Floats{} + highest;
  return ((p = step(p, x, others)), ...);
}

// Zero, or up to where P below was fitted; what has a subnormal half is rounded as math::gelu does it.
[[gnu::always_inline]] inline bool all_near(const uint16_t* h) {
  constexpr uint16_t kLeast = 0x0400, kMost = 0x40d0;
  Halves far = {};
#pragma GCC unroll 4
  for (int64_t i = 0; i < kBlock; i += 2 * kLanes) {
    Halves t;
    std::memcpy(&t, h + i, sizeof t);
    t &= 0x7fff;
    far |= (Halves)(t > kMost) | (Halves)(Halves(t - 1) < kLeast - 1);
  }
  return !level::any((Words)far);
}

// max(x, 0) - t Phi(-t) for t = |x|, with Phi(-t) as 2^(t P(t) - 1): no division. P is fit "normal_log", 2^r
// "exp_weight".
[[gnu::always_inline]] inline void near_block(const uint16_t* h, uint16_t* y) {
  const Several x = load(h);
  Several t, r, power;
#pragma GCC unroll 8
  for (int k = 0; k < kAtOnce; ++k) t.v[k] = (Floats)((Words)x.v[k] & 0x7fffffffu);
  const Several p = polynomial(t, 3.30450511e-08f, -9.2543047e-07f, 8.94436289e-06f, -5.97467942e-06f, -0.000684122671f,
                               0.00798084494f, -0.0533264168f, -0.458848894f, -1.15115798f, -1.0f);
  // With the bias in it, the last bits are the exponent.
  const float shift = math::detail::round_shift<float>() + float(math::FloatTraits<float>::kBias);
#pragma GCC unroll 8
  for (int k = 0; k < kAtOnce; ++k) {
    const Floats shifted = p.v[k] + shift;
    r.v[k] = p.v[k] - (shifted - shift);
    power.v[k] = (Floats)((Words)shifted << int(math::FloatTraits<float>::kMantissaBits));
  }
  const Several e = polynomial(r, 0.00132645969f, 0.00967161823f, 0.0555073507f, 0.240222409f, 0.693147004f, 1.0f);
#pragma GCC unroll 8
  for (int k = 0; k < kAtOnce; ++k) {
    const Floats above = x.v[k] < 0.0f ? Floats{} : x.v[k];
    r.v[k] = above - t.v[k] * (e.v[k] * power.v[k]);
  }
#pragma GCC unroll 8
  for (int k = 0; k < kAtOnce; k += 2) level::store_bf16_pairs(y + k * kLanes, r.v[k], r.v[k + 1]);
}

[[gnu::noinline]] void far_block(const uint16_t* h, uint16_t* y) {
  float x[kBlock];
  bf16_to_float(h, x, kBlock);
  for (float& v : x) v = math::gelu(v);
  float_to_bf16(x, y, kBlock);
}

[[gnu::always_inline]] inline void block(const uint16_t* h, uint16_t* y) {
  if (all_near(h)) [[likely]]
    near_block(h, y);
  else
    far_block(h, y);
}

}  // namespace

void gelu_of_bf16(const uint16_t* const* in, uint16_t* const* out, int64_t n, const void*) {
  const uint16_t* x = in[0];
  uint16_t* y = out[0];
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) block(x + i, y + i);
  if (i == n) return;
  uint16_t rest[kBlock] = {};
  std::memcpy(rest, x + i, (n - i) * sizeof *x);
  block(rest, rest);
  std::memcpy(y + i, rest, (n - i) * sizeof *y);
}

}  // namespace baracuda::unary
#endif
