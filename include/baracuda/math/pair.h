// Building blocks of the vector math: unevaluated sums of two floats, powers of two, Horner's rule.
// Nothing here may be reassociated. Contraction of a * b + c into an FMA is harmless where a compiler has no choice:
// every product that is also used on its own is either exact or goes through two_prod, and sums of two products name
// the one that is fused (multiply_add). With a choice, a vector loop and its scalar end may differ in the last bit.
#pragma once
#include "baracuda/portable.h"

namespace baracuda::math::detail {

template <class T>
struct Pair {
  T hi, lo;
};

// a + b exactly, for |a| >= |b| or a == 0 (Dekker).
template <class T>
BCU_FN Pair<T> fast_two_sum(T a, T b) {
  T s = a + b;
  return {s, b - (s - a)};
}

// a + b exactly (Knuth).
template <class T>
BCU_FN Pair<T> two_sum(T a, T b) {
  T s = a + b, bb = s - a;
  return {s, (a - (s - bb)) + (b - bb)};
}

// x with the lower half of its significand cleared: products of two such values are exact.
template <class T>
BCU_FN T upper_half(T x) {
  using Uint = typename FloatTraits<T>::Uint;
  return bit_cast<T>(bit_cast<Uint>(x) & ~((Uint(1) << FloatTraits<T>::kLowHalfBits) - 1));
}

// a * b exactly (f32) or to 2^-106 (f64 without FMA).
template <class T>
BCU_FN Pair<T> two_prod(T a, T b) {
#if BCU_HAS_FMA
  T p = a * b;
  return {p, fma(a, b, -p)};
#else
  T p = a * b, ah = upper_half(a), bh = upper_half(b), al = a - ah, bl = b - bh;
  return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
#endif
}

// a * b + c, rounded once where there is an FMA.
template <class T>
BCU_FN T multiply_add(T a, T b, T c) {
#if BCU_HAS_FMA
  return fma(a, b, c);
#else
  return a * b + c;
#endif
}

template <class T>
BCU_FN Pair<T> mul(Pair<T> a, Pair<T> b) {
  Pair<T> p = two_prod(a.hi, b.hi);
  return fast_two_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

// a / b with one division, to about twice the precision of T.
template <class T>
BCU_FN Pair<T> divide(Pair<T> a, Pair<T> b) {
  T r = T(1) / b.hi, q = a.hi * r;
  Pair<T> p = two_prod(q, b.hi);
  return fast_two_sum(q, (((a.hi - p.hi) - p.lo) + (a.lo - q * b.lo)) * r);
}

template <class T>
BCU_FN T horner(T, T c) {
  return c;
}
// c0 + x (c1 + x (c2 + ...))
template <class T, class... Rest>
BCU_FN T horner(T x, T c0, T c1, Rest... rest) {
  return c0 + x * horner(x, c1, rest...);
}
// The same as two polynomials in x^2, of the even and of the odd powers: half as many steps wait for each other.
template <class T>
BCU_FN T every_second(T, T c) {
  return c;
}
template <class T>
BCU_FN T every_second(T, T c0, T) {
  return c0;
}
template <class T, class... Rest>
BCU_FN T every_second(T square, T c0, T, Rest... rest) {
  return c0 + square * every_second(square, rest...);
}
template <class T, class... Rest>
BCU_FN T even_odd(T x, T c0, Rest... rest) {
  return every_second(x * x, c0, rest...) + x * every_second(x * x, rest...);
}

// 1.5 * 2^mantissa: adding it rounds to an integer, which is then in the low bits.
template <class T>
BCU_FN T round_shift() {
  using Uint = typename FloatTraits<T>::Uint;
  return bit_cast<T>((Uint(FloatTraits<T>::kBias + FloatTraits<T>::kMantissaBits) << FloatTraits<T>::kMantissaBits) |
                     (Uint(1) << (FloatTraits<T>::kMantissaBits - 1)));
}

// The bits of a minus the bits of b; they wrap around where a is NaN.
template <class T>
BCU_FN typename FloatTraits<T>::Int bits_apart(T a, T b) {
  using Uint = typename FloatTraits<T>::Uint;
  return typename FloatTraits<T>::Int(bit_cast<Uint>(a) - bit_cast<Uint>(b));
}

// An integer in [-2^20, 2^20] held as a float, as an integer. (Conversion to int64 is not vectorised below AVX-512.)
template <class T>
BCU_FN typename FloatTraits<T>::Int to_int(T n) {
  return bits_apart(n + round_shift<T>(), round_shift<T>());
}

// 2^n for n in the range of normal numbers.
template <class T>
BCU_FN T pow2(typename FloatTraits<T>::Int n) {
  using Uint = typename FloatTraits<T>::Uint;
  return bit_cast<T>((Uint(n) + Uint(FloatTraits<T>::kBias)) << FloatTraits<T>::kMantissaBits);
}

// y * 2^n in two steps, so that overflow and gradual underflow come out right; |n| <= 2 kBias - 2.
template <class T>
BCU_FN T scale_pow2(T y, typename FloatTraits<T>::Int n) {
  using Int = typename FloatTraits<T>::Int;
  using Uint = typename FloatTraits<T>::Uint;
  // A logical shift: int64 has no arithmetic one below AVX-512. Unsigned, because n is anything when y is NaN.
  Uint first = ((Uint(n) + 4096u) >> 1) - 2048u;
  return y * pow2<T>(Int(first)) * pow2<T>(Int(Uint(n) - first));
}

}  // namespace baracuda::math::detail
