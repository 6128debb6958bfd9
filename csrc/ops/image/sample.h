// Where a number of a grid points to along an axis, and what is taken there: for kernels of all backends.
#pragma once
#include "ops/image/taps.h"

namespace baracuda::image {

enum : int32_t { kZeros = 0, kBorder = 1, kReflection = 2 };

// An axis that is sampled: -1 and 1 are its ends, or, with align, the middles of its first and last place.
struct Side {
  int64_t size;
  int32_t filter, padding, align;  // filter: kNearest, kLinear or kCubic
};

// A position: `part` behind one of the places; taps count from `first`. slope: the position's by the grid's number.
template <class C>
struct Aim {
  int64_t first;
  C part, slope;
};

template <class C>
BCU_FN C below(C v) {
  C whole = math::rint(v);
  return whole > v ? whole - C(1) : whole;
}
// NaN is the least.
template <class C>
BCU_FN C held(C v, C least, C most) {
  return v > least ? (v < most ? v : most) : least;
}

// A position mirrored at both ends until it is between them, and whether it goes back there.
template <class C>
struct Mirrored {
  C at;
  int32_t back;
};
template <class C>
BCU_FN Mirrored<C> mirrored(Side s, C at) {
  C low = s.align != 0 ? C(0) : C(-0.5), span = C(s.align != 0 ? s.size - 1 : s.size);
  C far = at - low, away = far < C(0) ? -far : far, turns = below(away / span), rest = away - turns * span;
  bool odd = turns - C(2) * below(turns * C(0.5)) != C(0);
  Mirrored<C> m;
  m.at = low + (odd ? span - rest : rest), m.back = odd != (far < C(0)) ? 1 : 0;
  return m;
}

template <class C>
BCU_FN Aim<C> aim_at(Side s, C g) {
  C size = C(s.size), last = C(s.size - 1);
  Aim<C> a;
  a.slope = (s.align != 0 ? last : size) * C(0.5);
  C at = s.align != 0 ? (g + C(1)) * a.slope : ((g + C(1)) * size - C(1)) * C(0.5);
  if (s.filter == kCubic || s.padding == kZeros) {
    if (s.padding == kReflection) {  // taps are mirrored one by one
      C low = s.align != 0 ? C(0) : C(-0.5), period = C(2) * (s.align != 0 ? last : size);
      at -= period * below((at - low) / period);
      at = at == at ? at : C(0);
    }
    at = held(at, C(-4), C(2) * size + C(4));
  } else {
    if (s.padding == kReflection) {
      Mirrored<C> m = mirrored(s, at);
      at = m.at, a.slope = m.back != 0 ? -a.slope : a.slope;
    }
    a.slope = at > C(0) && at < last ? a.slope : C(0);
    at = held(at, C(0), last);
  }
  C whole = s.filter == kNearest ? math::rint(at) : below(at);
  a.first = int64_t(whole) - (s.filter == kCubic ? 1 : 0);
  a.part = at - whole;
  return a;
}

BCU_FN int32_t taps_of(int32_t filter) { return filter == kNearest ? 1 : filter == kLinear ? 2 : 4; }

// Where a tap lies; -1: outside.
BCU_FN int64_t place_of(Side s, int64_t tap) {
  if (tap >= 0 && tap < s.size) return tap;
  if (s.filter != kCubic || s.padding == kZeros) return -1;
  if (s.padding == kBorder || s.size == 1) return tap < 0 ? 0 : s.size - 1;
  int64_t period = 2 * s.size - (s.align != 0 ? 2 : 0), m = tap % period;
  m += m < 0 ? period : 0;
  return m < s.size ? m : 2 * s.size - (s.align != 0 ? 2 : 1) - m;
}

// Of a cubic filter with a = -0.75, in factors that are right to some ulp everywhere.
template <class C>
BCU_FN C weight_of_tap(int32_t filter, C t, int32_t k) {
  C u = C(1) - t;
  if (filter == kNearest) return C(1);
  if (filter == kLinear) return k == 0 ? u : t;
  if (k == 0) return C(-0.75) * t * u * u;
  if (k == 3) return C(-0.75) * u * t * t;
  C near = k == 1 ? t : u, far = k == 1 ? u : t;
  return far * (C(1) + near - C(1.25) * near * near);
}
// The same by the position.
template <class C>
BCU_FN C slope_of_tap(int32_t filter, C t, int32_t k) {
  C u = C(1) - t;
  if (filter == kNearest) return C(0);
  if (filter == kLinear) return k == 0 ? C(-1) : C(1);
  if (k == 0) return C(-0.75) * u * (C(1) - C(3) * t);
  if (k == 3) return C(-0.75) * t * (C(2) - C(3) * t);
  C near = k == 1 ? t : u, slope = near * (C(3.75) * near - C(4.5));
  return k == 1 ? slope : -slope;
}

}  // namespace baracuda::image
