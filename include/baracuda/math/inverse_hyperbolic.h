// asinh, acosh, atanh.
// Method: log1p of what is added to 1, with what its sums lost carried along; for huge x log(x) + ln2.
#pragma once
#include "baracuda/math/log.h"

namespace baracuda::math {
namespace detail {

// log1p(t + lost), |lost| much smaller than 1 + t.
template <class T>
BCU_FN T log1p_pair(T t, T lost) {
  return log1p_impl(t) + lost / (T(1) + t);
}

// From here on x^2 + 1 is x^2, and ln(2x) is what asinh and acosh are.
template <class T>
BCU_FN T huge_start() {
  return T(0x1p28);
}

template <class T>
BCU_FN T log_twice(T a) {
  LogReduced<T> r = log_reduce(a);
  return log_special(a, log_sum(r.k + T(1), r.m - T(1)));
}

// |x| = a: ln(a + sqrt(a^2 + 1)) = log1p(a + a^2 / (1 + sqrt(a^2 + 1)))
template <class T>
BCU_FN T asinh_impl(T x) {
  T a = fabs(x), b = at_most(a, huge_start<T>());
  T q = b * b / (T(1) + sqrt(b * b + T(1)));
  Pair<T> t = two_sum(b, q);
  T small = log1p_pair(t.hi, t.lo);
  return copysign(a < huge_start<T>() ? small : log_twice(a), x);
}

// x = 1 + f: ln(x + sqrt(x^2 - 1)) = log1p(f + sqrt(f (2 + f)))
template <class T>
BCU_FN T acosh_impl(T x) {
  T f = at_most(x, huge_start<T>()) - T(1);
  Pair<T> t = two_sum(f, sqrt(f * (T(2) + f)));
  T small = log1p_pair(t.hi, t.lo);
  T y = x < huge_start<T>() ? small : log_twice(x);
  return x < T(1) ? quiet_nan<T>() : y;
}

// log1p(2a / (1 - a)) / 2
template <class T>
BCU_FN T atanh_impl(T x) {
  T a = fabs(x);
  Pair<T> d = two_sum(T(1), -a);
  T t = T(2) * a / d.hi;
  // What the quotient and 1 - a lost.
  Pair<T> p = two_prod(t, d.hi);
  T lost = ((T(2) * a - p.hi) - p.lo - t * d.lo) / d.hi;
  T y = T(0.5) * log1p_pair(t, a < T(1) ? lost : T(0));
  y = a == T(0) ? a : y;
  return copysign(a == T(1) ? infinity<T>() : a > T(1) ? quiet_nan<T>() : y, x);
}

}  // namespace detail

// ulp: 2.9 (f32) 2.9 (f64)
BCU_FN float asinh(float x) { return detail::asinh_impl(x); }
// ulp: 2.9 (f32) 2.9 (f64)
BCU_FN float acosh(float x) { return detail::acosh_impl(x); }
// ulp: 2.9 (f32) 2.9 (f64)
BCU_FN float atanh(float x) { return detail::atanh_impl(x); }
#if BCU_HAS_F64
BCU_FN double asinh(double x) { return detail::asinh_impl(x); }
BCU_FN double acosh(double x) { return detail::acosh_impl(x); }
BCU_FN double atanh(double x) { return detail::atanh_impl(x); }
#endif

}  // namespace baracuda::math
