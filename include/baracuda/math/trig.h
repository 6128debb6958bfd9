// sin, cos, tan.
// Method: exact reduction to [-pi/4, pi/4] as a pair (trig_reduce.h), then odd and even polynomials.
#pragma once
#include "baracuda/math/trig_reduce.h"

namespace baracuda::math {
namespace detail {

// (sin(r) - r) / r^3, (cos(r) - 1 + r^2/2) / r^4 and (tan(r) - r) / r^3 in z = r^2, |r| <= pi/4; fits of those names.
BCU_FN float sin_poly(float z) { return horner(z, -0.166666552f, 0.00833215844f, -0.000195149565f); }
#if BCU_HAS_F64
BCU_FN double sin_poly(double z) {
  return horner(z, -0.1666666666666663, 0.0083333333333220627, -0.00019841269829543186, 2.7557313604716461e-06,
                -2.5050745066482096e-08, 1.5896069120754678e-10);
}
#endif

BCU_FN float cos_poly(float z) { return horner(z, 0.0416666456f, -0.0013887313f, 2.44327875e-05f); }
#if BCU_HAS_F64
BCU_FN double cos_poly(double z) {
  return horner(z, 0.041666666666666595, -0.0013888888888872978, 2.4801587288800546e-05, -2.7557314164118042e-07,
                2.0875698726814425e-09, -1.1358424423363502e-11);
}
#endif

BCU_FN float tan_poly(float z) {
  return horner(z, 0.333331555f, 0.13338834f, 0.0534084029f, 0.0244406033f, 0.00310282572f, 0.00939569343f);
}
#if BCU_HAS_F64
BCU_FN double tan_poly(double z) {
  return horner(z, 0.33333333333332771, 0.13333333333415526, 0.053968253926236491, 0.021869489619371497,
                0.0088632190176497361, 0.0035922904069155734, 0.0014547498608102453, 0.000595099022140971,
                0.00022227823888825498, 0.0001367357273533333, -2.668369339473463e-05, 8.9726887021734968e-05,
                -4.5025351442670955e-05, 2.0899179328947001e-05);
}
#endif

// Below this sin(x) = tan(x) = x to less than half an ulp, and the reduction is not needed.
BCU_FN float trig_tiny(float) { return 0x1p-12f; }
#if BCU_HAS_F64
BCU_FN double trig_tiny(double) { return 0x1p-27; }
#endif

template <class T>
BCU_FN T sin_kernel(TrigReduced<T> a) {
  T z = a.r * a.r;
  return a.r + (a.r * z * sin_poly(z) + a.r_lo);
}

template <class T>
BCU_FN T cos_kernel(TrigReduced<T> a) {
  T z = a.r * a.r;
  Pair<T> top = fast_two_sum(T(1), T(-0.5) * z);
  return top.hi + (top.lo + (z * z * cos_poly(z) - a.r * a.r_lo));
}

// y, negated where bit 1 of the quadrant is set.
template <class T>
BCU_FN T signed_by(T y, typename FloatTraits<T>::Uint quadrant) {
  using Uint = typename FloatTraits<T>::Uint;
  return bit_cast<T>(bit_cast<Uint>(y) ^ ((quadrant & 2u) << (8 * sizeof(T) - 2)));
}

template <class T>
BCU_FN T sin_of(T x, TrigReduced<T> a) {
  T y = signed_by((a.quadrant & 1u) != 0 ? cos_kernel(a) : sin_kernel(a), a.quadrant);
  return fabs(x) < trig_tiny(x) ? x : y;
}

template <class T>
BCU_FN T cos_of(T x, TrigReduced<T> a) {
  // cos(pi/2 + r) = -sin(r), cos(pi + r) = -cos(r), cos(3 pi/2 + r) = sin(r)
  T y = signed_by((a.quadrant & 1u) != 0 ? sin_kernel(a) : cos_kernel(a), a.quadrant + 1u);
  return fabs(x) < trig_tiny(x) ? T(1) : y;
}

template <class T>
BCU_FN T tan_of(T x, TrigReduced<T> a) {
  T z = a.r * a.r;
  Pair<T> t = fast_two_sum(a.r, a.r * z * tan_poly(z) + a.r_lo * (T(1) + z));
  // tan(pi/2 + r) = -1 / tan(r), with one Newton step for the low part
  T inverse = T(-1) / t.hi;
  Pair<T> p = two_prod(inverse, t.hi);
  T cotangent = inverse + inverse * (((T(1) + p.hi) + p.lo) + inverse * t.lo);
  T y = (a.quadrant & 1u) != 0 ? cotangent : t.hi;
  return fabs(x) < trig_tiny(x) ? x : y;
}

}  // namespace detail

// ulp: 1.0 (f32) 1.0 (f64)
BCU_FN float sin(float x) { return detail::sin_of(x, detail::trig_reduce(x)); }
// ulp: 1.0 (f32) 1.0 (f64)
BCU_FN float cos(float x) { return detail::cos_of(x, detail::trig_reduce(x)); }
// ulp: 1.7 (f32) 1.4 (f64)
BCU_FN float tan(float x) { return detail::tan_of(x, detail::trig_reduce(x)); }
#if BCU_HAS_F64
BCU_FN double sin(double x) { return detail::sin_of(x, detail::trig_reduce(x)); }
BCU_FN double cos(double x) { return detail::cos_of(x, detail::trig_reduce(x)); }
BCU_FN double tan(double x) { return detail::tan_of(x, detail::trig_reduce(x)); }
#endif

// The same bits for |x| <= near_limit, where they take a third (f32) to a fifth (f64) of the time. Beyond it
// their results mean nothing.
template <class T>
BCU_FN bool is_near(T x) {
  return fabs(x) <= detail::near_limit(x);
}
template <class T>
BCU_FN T sin_near(T x) {
  return detail::sin_of(x, detail::trig_reduce_near(x));
}
template <class T>
BCU_FN T cos_near(T x) {
  return detail::cos_of(x, detail::trig_reduce_near(x));
}
template <class T>
BCU_FN T tan_near(T x) {
  return detail::tan_of(x, detail::trig_reduce_near(x));
}

}  // namespace baracuda::math
