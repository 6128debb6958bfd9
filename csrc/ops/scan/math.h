// One step of running extremes and of logarithms of running sums of exponentials, on every backend.
#pragma once
#include "baracuda/math/math.h"
#include "baracuda/portable.h"

namespace baracuda::scan {

// Whether a later value takes the place of an earlier one: of values that tie the later one does; NaN stays but for
// NaN.
template <bool kMax, class C>
BCU_FN bool replaces(C later, C earlier) {
  return (kMax ? later >= earlier : later <= earlier) | (later != later);
}
// exp(a - b), which is 1 where both are the same infinity.
template <class C>
BCU_FN C exp_of_difference(C a, C b) {
  return math::exp(a == b ? C(0) : a - b);
}
// The larger one, NaN where there is any.
template <class C>
BCU_FN C larger(C a, C b) {
  return b > a || b != b ? b : a;
}

}  // namespace baracuda::scan
