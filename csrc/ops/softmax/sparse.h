// Thresholds of sparsemax and entmax-1.5 by Newton's method, from below: each step is over what lies above the
// threshold so far, which becomes fewer, and steps end where the threshold stays.
#pragma once
#include "baracuda/math/math.h"

namespace baracuda::softmax {

// What steps at a threshold t need: sum((z - t)^+), and how many are above it, or sum((z - t)^+ ^2).
template <class C>
struct Above {
  C first, second;
};
// z: distance from the row's largest value, for entmax-1.5 half of it. The result is (z - t)^+, or its square.
template <bool kSquared, class C>
BCU_FN C sparse_value(C z, C t) {
  C d = z > t ? z - t : C(0);
  return kSquared ? d * d : d;
}
template <bool kSquared, class C>
BCU_FN C second_term(C d) {
  return kSquared ? d * d : d > C(0) ? C(1) : C(0);
}
template <bool kSquared, class C>
BCU_FN C distance_of(C x, C top) {
  return kSquared ? (x - top) * C(0.5) : x - top;
}
// The next threshold: where the sum is 1 if no other value crosses it.
template <bool kSquared, class C>
BCU_FN C next_threshold(C t, Above<C> a) {
  return kSquared ? t + (a.second - C(1)) / (a.first * C(2)) : t + (a.first - C(1)) / a.second;
}
enum : int { kMostSteps = 64 };

// The gradient: dx = s (dy - sum(s dy) / sum(s)), s = 1 where y is above 0, or sqrt(y).
template <bool kSquared, class C>
BCU_FN C sparse_slope(C y) {
  return kSquared ? math::sqrt(y) : y > C(0) ? C(1) : y == C(0) ? C(0) : y;
}

}  // namespace baracuda::softmax
