// Reduction of an angle to [-pi/4, pi/4], exact to the last place for every finite argument.
// Method: turns = x * 1/(2 pi), where 1/(2 pi) is cut into pieces whose products with x are exact (Payne and Hanek);
// each product loses its whole turns by t - rint(t), which is exact too and makes pieces that are too large for x
// vanish by themselves. No branch, no table: every argument costs the same. Piece j of b bits, as written below, is
// (floor(2^(b (j + 1)) / (2 pi)) mod 2^b) * 2^(scale - b (j + 1)).
// Arguments up to near_limit take a third to a fifth of that: x - n pi/2 with pi/2 in a few parts (Cody and Waite).
// trig_reduce chooses by the value, so that a loop that looks at its values first may call trig_reduce_near instead and
// get the same bits.
#pragma once
#include "baracuda/math/pair.h"

namespace baracuda::math::detail {

// x = quadrant * pi/2 + r + r_lo (mod 2 pi), |r| <= pi/4 or little more. Only the quadrant's last two bits count.
template <class T>
struct TrigReduced {
  T r, r_lo;
  typename FloatTraits<T>::Uint quadrant;
};

// The largest |x| that is reduced the near way.
BCU_FN float near_limit(float) { return 65536.0f; }
#if BCU_HAS_F64
BCU_FN double near_limit(double) { return 1048576.0; }
#endif

// Added to a number of less than half as many bits, it rounds that to an integer, which the sum's last bits then are.
template <class T>
BCU_FN T to_integer() {
  return T(3) * T(typename FloatTraits<T>::Uint(1) << (FloatTraits<T>::kMantissaBits - 1));
}
// quarter turns, which are an integer, as one
template <class T>
BCU_FN typename FloatTraits<T>::Uint quadrant_of(T quarters) {
  return bit_cast<typename FloatTraits<T>::Uint>(quarters + to_integer<T>());
}
// An angle in quarter turns, to the nearest one.
template <class T>
BCU_FN T quarters_of(T x) {
  return multiply_add(x, T(0.636619772367581343), to_integer<T>()) - to_integer<T>();
}

template <class T>
BCU_FN T without_turns(T t) {
  return t - rint(t);
}

template <class T>
BCU_FN Pair<T> accumulate(Pair<T> sum, T f) {
  Pair<T> s = two_sum(sum.hi, f);
  return {s.hi, sum.lo + s.lo};
}

template <class T>
BCU_FN Pair<T> accumulate(Pair<T> sum, Pair<T> f) {
  return accumulate(accumulate(sum, f.hi), f.lo);
}

// x * c less its whole turns, both parts.
template <class T>
BCU_FN Pair<T> turns(T x, T c) {
  Pair<T> p = two_prod(x, c);
  return {without_turns(p.hi), without_turns(p.lo)};
}

// sum turns - quarters / 4, as an angle
template <class T>
BCU_FN TrigReduced<T> to_angle(Pair<T> sum, T quarters, Pair<T> two_pi) {
  Pair<T> angle = mul(fast_two_sum(sum.hi, sum.lo), two_pi);
  return {angle.hi, angle.lo, quadrant_of(quarters)};
}

#if BCU_HAS_F64
BCU_FN TrigReduced<float> narrow(double r, double quarters) {
  float hi = float(r);
  return {hi, float(r - hi), quadrant_of(float(quarters))};
}
#endif

#if BCU_HAS_F64 && !defined(__CUDACC__)
// f32 through f64: pieces of 28 bits, products of 52. The running sum is exact until its last places, because the
// quadrant is taken off first.
BCU_FN TrigReduced<float> trig_reduce_far(float angle) {
  double x = angle;
  double f0 = without_turns(x * 0x1.45f3068p-3);
  double f1 = without_turns(x * 0x1.727220ap-29);
  double f2 = without_turns(x * 0x1.29fc274p-58);
  double f3 = without_turns(x * 0x1.7d1f534p-86);
  double f4 = without_turns(x * 0x1.bb81b68p-115);
  double f5 = without_turns(x * 0x1.14acc9ep-141);
  double f6 = without_turns(x * 0x1.0e4107p-172);
  double quarters = rint(4.0 * ((f0 + f1) + (f2 + f3) + (f4 + f5) + f6));
  double r = (((((((f0 - 0.25 * quarters) + f1) + f2) + f3) + f4) + f5) + f6) * 6.283185307179586;
  return narrow(r, quarters);
}
#else
// f32 alone: eight pieces of 24 bits, scaled by 2^90 against underflow (arguments below 2^-12 are not reduced).
BCU_FN TrigReduced<float> trig_reduce_far(float angle) {
  float x = angle * 0x1p-90f;
  Pair<float> f0 = turns(x, 0x1.45f3p87f);
  Pair<float> f1 = turns(x, 0x1.b72722p65f);
  Pair<float> f2 = turns(x, 0x1.529fcp36f);
  Pair<float> f3 = turns(x, 0x1.3abe8p13f);
  Pair<float> f4 = turns(x, 0x1.f534dcp-8f);
  Pair<float> f5 = turns(x, 0x1.c0db6p-32f);
  Pair<float> f6 = turns(x, 0x1.4acc9ep-55f);
  Pair<float> f7 = turns(x, 0x1.0e41p-82f);
  float total = ((f0.hi + f0.lo) + (f1.hi + f1.lo)) + ((f2.hi + f2.lo) + (f3.hi + f3.lo));
  total += ((f4.hi + f4.lo) + (f5.hi + f5.lo)) + ((f6.hi + f6.lo) + (f7.hi + f7.lo));
  float quarters = rint(4.0f * total);
  Pair<float> sum = {-0.25f * quarters, 0.0f};
  sum = accumulate(sum, f0);
  sum = accumulate(sum, f1);
  sum = accumulate(sum, f2);
  sum = accumulate(sum, f3);
  sum = accumulate(sum, f4);
  sum = accumulate(sum, f5);
  sum = accumulate(sum, f6);
  sum = accumulate(sum, f7);
  return to_angle(sum, quarters, {6.28318548f, -1.74845553e-07f});
}
#endif

#if BCU_HAS_FMA
// f32 alone, pi/2 in three parts. x less n of the first is exact: a multiple of 2^-24, or x itself, and below 1.
BCU_FN TrigReduced<float> trig_reduce_near(float x) {
  float n = quarters_of(x);
  Pair<float> p = two_prod(n, 4.37113883e-08f);
  Pair<float> s = two_sum(fma(-n, 1.57079637f, x), p.hi);
  Pair<float> r = fast_two_sum(s.hi, s.lo + fma(n, 1.71512451e-15f, p.lo));
  return {r.hi, r.lo, quadrant_of(n)};
}
#elif BCU_HAS_F64
BCU_FN TrigReduced<float> trig_reduce_near(float angle) {
  double x = angle, n = quarters_of(x);
  return narrow((x - n * 0x1.921fb544p+0) - n * 6.077100506506192e-11, n);
}
#else
BCU_FN TrigReduced<float> trig_reduce_near(float x) { return trig_reduce_far(x); }
#endif

#if BCU_HAS_F64
// f64: parts of 33 bits, whose products with n are exact.
BCU_FN TrigReduced<double> trig_reduce_near(double x) {
  double n = quarters_of(x);
  Pair<double> s = two_sum(x - n * 0x1.921fb54400000p+0, -(n * 0x1.0b4611a600000p-34));
  Pair<double> r = fast_two_sum(s.hi, s.lo - n * 2.0222662487959506e-21);
  return {r.hi, r.lo, quadrant_of(n)};
}

// f64: five of 22 pieces of 52 bits (scaled by 2^500; 52 keep two_prod exact without FMA), starting where x times a
// piece is no longer a multiple of a turn. The pieces are picked by a shift network, one bit of the starting index at a
// time.
BCU_FN TrigReduced<double> trig_reduce_far(double angle) {
  double x = angle * 0x1p-500;
  // floor((e - 52) / 52), at least 0, for the exponent e of the argument
  uint64_t field = (bit_cast<uint64_t>(angle) >> 52) & 0x7ff;
  double e = bit_cast<double>(field | 0x4330000000000000u) - (0x1p52 + 1023.0);
  double w = at_least(rint((e - 52.0) * (1.0 / 52.0) - 0.4904), 0.0);
  bool w16 = w >= 16.0;
  w = w16 ? w - 16.0 : w;
  bool w8 = w >= 8.0;
  w = w8 ? w - 8.0 : w;
  bool w4 = w >= 4.0;
  w = w4 ? w - 4.0 : w;
  bool w2 = w >= 2.0;
  w = w2 ? w - 2.0 : w;
  bool w1 = w >= 1.0;
  double w16_0 = w16 ? 0x1.b69b3f6793e58p-333 : 0x1.45f306dc9c88p497;
  double w16_1 = w16 ? 0x1.36e9e8c7ecd38p-387 : 0x1.529fc2757d1f4p446;
  double w16_2 = w16 ? 0x1.2ff516ba93dd6p-437 : 0x1.34ddc0db62958p394;
  double w16_3 = w16 ? 0x1.faf97c5ecf41p-492 : 0x1.93c439041fe5p342;
  double w16_4 = w16 ? 0x1.9cfbc52949752p-541 : 0x1.63abdebbc5618p290;
  double w16_5 = w16 ? 0x1.5fdafd88fc6aep-593 : 0x1.b92371d2126e8p239;
  double w16_6 = w16 ? 0.0 : 0x1.700324977504ep187;
  double w8_0 = w8 ? 0x1.62534e7dd104p81 : w16_0;
  double w8_1 = w8 ? 0x1.afa975da24274p31 : w16_1;
  double w8_2 = w8 ? 0x1.9c7026b45f7e4p-22 : w16_2;
  double w8_3 = w8 ? 0x1.3991d639835p-78 : w16_3;
  double w8_4 = w8 ? 0x1.9cfa4e422fc5cp-125 : w16_4;
  double w8_5 = w8 ? 0x1.efc941d8ffc4ap-177 : w16_5;
  double w8_6 = w8 ? 0x1.ffef02cc07f78p-229 : w16_6;
  double w8_7 = w8 ? 0x1.788c5ad05368ep-281 : 0x1.1921cfe1deb1cp134;
  double w8_8 = w8 ? 0x1.b69b3f6793e58p-333 : 0x1.62534e7dd104p81;
  double w8_9 = w8 ? 0x1.36e9e8c7ecd38p-387 : 0x1.afa975da24274p31;
  double w8_10 = w8 ? 0x1.2ff516ba93dd6p-437 : 0x1.9c7026b45f7e4p-22;
  double w8_11 = w8 ? 0x1.faf97c5ecf41p-492 : 0x1.3991d639835p-78;
  double w4_0 = w4 ? w8_4 : w8_0;
  double w4_1 = w4 ? w8_5 : w8_1;
  double w4_2 = w4 ? w8_6 : w8_2;
  double w4_3 = w4 ? w8_7 : w8_3;
  double w4_4 = w4 ? w8_8 : w8_4;
  double w4_5 = w4 ? w8_9 : w8_5;
  double w4_6 = w4 ? w8_10 : w8_6;
  double w4_7 = w4 ? w8_11 : w8_7;
  double w2_0 = w2 ? w4_2 : w4_0;
  double w2_1 = w2 ? w4_3 : w4_1;
  double w2_2 = w2 ? w4_4 : w4_2;
  double w2_3 = w2 ? w4_5 : w4_3;
  double w2_4 = w2 ? w4_6 : w4_4;
  double w2_5 = w2 ? w4_7 : w4_5;
  double w1_0 = w1 ? w2_1 : w2_0;
  double w1_1 = w1 ? w2_2 : w2_1;
  double w1_2 = w1 ? w2_3 : w2_2;
  double w1_3 = w1 ? w2_4 : w2_3;
  double w1_4 = w1 ? w2_5 : w2_4;
  Pair<double> f0 = turns(x, w1_0), f1 = turns(x, w1_1), f2 = turns(x, w1_2), f3 = turns(x, w1_3), f4 = turns(x, w1_4);
  double total = ((f0.hi + f0.lo) + (f1.hi + f1.lo)) + ((f2.hi + f2.lo) + (f3.hi + f3.lo)) + (f4.hi + f4.lo);
  double quarters = rint(4.0 * total);
  Pair<double> sum = {-0.25 * quarters, 0.0};
  sum = accumulate(sum, f0);
  sum = accumulate(sum, f1);
  sum = accumulate(sum, f2);
  sum = accumulate(sum, f3);
  sum = accumulate(sum, f4);
  return to_angle(sum, quarters, {6.2831853071795862, 2.4492935982947064e-16});
}
#endif

template <class T>
BCU_FN TrigReduced<T> trig_reduce(T x) {
  TrigReduced<T> near = trig_reduce_near(x);
  if (fabs(x) <= near_limit(x)) return near;
  return trig_reduce_far(x);
}

}  // namespace baracuda::math::detail
